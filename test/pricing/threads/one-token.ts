import { parentPort } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import type { CountRequest } from '../../../src/pricing/token-counter.ts'

const port = parentPort as MessagePort

/** A thread for which each text, and each body, is one token. */
port.on('message', ({ id, message }: { id: number; message: CountRequest }) => {
  const texts = message.kind === 'texts' ? message.texts.length : 1
  port.postMessage({ id, value: Array(texts).fill(1) })
})
