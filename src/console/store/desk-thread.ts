import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../base/message-of.ts'
import { Desk } from './console-store.ts'
import type { DeskOptions } from './console-store.ts'
import type { Answer, Question } from './messages.ts'

/** The desk's thread; link.ts starts it with DeskOptions and sends it Questions. */

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

const desk = new Desk(workerData as DeskOptions)

port.on('message', async ({ id, method, args }: Question) => {
  let answer: Answer
  try {
    answer = { id, value: await (desk[method] as (...args: unknown[]) => unknown).apply(desk, [...args]) }
  } catch (error) {
    const { code = null } = error as { code?: string | null }
    answer = { id, fault: { code, message: messageOf(error) } }
  }
  port.postMessage(answer)
  if (method === 'close') port.close()
})
