import { parentPort } from 'node:worker_threads'

/** A thread that receives requests and does not reply. */
parentPort?.on('message', () => undefined)
