import { parentPort } from 'node:worker_threads'

/** A thread that exits at its first request. */
parentPort?.on('message', () => process.exit(1))
