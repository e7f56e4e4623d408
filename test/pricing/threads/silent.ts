import { parentPort } from 'node:worker_threads'

/** A thread that takes every request and answers none. */
parentPort?.on('message', () => undefined)
