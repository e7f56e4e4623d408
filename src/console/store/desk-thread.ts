import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../base/message-of.ts'
import { ConsoleStore } from './console-store.ts'
import type { ConsoleStoreOptions } from './console-store.ts'
import type { StoreReply, StoreCall } from './messages.ts'

/** The desk's thread; link.ts starts it with DeskOptions and sends it Questions. */

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

const desk = new ConsoleStore(workerData as ConsoleStoreOptions)

port.on('message', async ({ id, method, args }: StoreCall) => {
  let answer: StoreReply
  try {
    answer = { id, value: await (desk[method] as (...args: unknown[]) => unknown).apply(desk, [...args]) }
  } catch (error) {
    const { code = null } = error as { code?: string | null }
    answer = { id, fault: { code, message: messageOf(error) } }
  }
  port.postMessage(answer)
  if (method === 'close') port.close()
})
