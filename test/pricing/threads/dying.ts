import { parentPort } from 'node:worker_threads'

/** A thread that dies of its first request. */
parentPort?.on('message', () => process.exit(1))
