import { parentPort, workerData } from 'node:worker_threads'
import { Writer } from './writer.ts'
import type { ToWriter, WriterOptions } from './writer-messages.ts'

/** The writing thread. `WriterLink` starts it with `WriterOptions` and sends `ToWriter` messages. */

const RECOVER_EVERY = 10_000
const EXPIRE_EVERY = 60_000
/** Milliseconds between two rounds of summing. A longer time needs less CPU, but a reader must read more unsummed rows. */
const SUM_EVERY = 1000

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

const writer = new Writer(workerData as WriterOptions, message => port.postMessage(message))
writer.recover()
writer.expire()
const timers = [
  setInterval(() => writer.recover(), RECOVER_EVERY),
  setInterval(() => writer.expire(), EXPIRE_EVERY),
  setInterval(() => writer.sum(), SUM_EVERY),
]

port.on('message', (message: ToWriter) => {
  if (message !== 'close') return writer.write(message)
  for (const timer of timers) clearInterval(timer)
  writer.close()
  port.close()
})
