import { parentPort } from 'node:worker_threads'
import { messageOf } from '../message-of.ts'
import type { ThreadReply, ThreadRequest, ThrownInThread } from './thread-client.ts'

/**
 * Serves the requests of a ThreadClient.
 * @param handle returns the reply, or throws
 * @param close called after the last request
 * @throws outside of a thread
 */
export function serveThread<M>(handle: (message: M) => unknown, close: () => void = () => {}): void {
  const port = parentPort
  if (port === null) throw new Error('to be started as a thread')
  port.on('message', async (request: ThreadRequest | 'close') => {
    if (request === 'close') {
      close()
      port.close()
      return
    }
    const { id } = request
    let reply: ThreadReply
    try {
      reply = { id, value: await handle(request.message as M) }
    } catch (thrown) {
      const { name = 'Error', stack, code, field } = thrown as Partial<ThrownInThread>
      reply = { id, error: { name, message: messageOf(thrown), stack, code, field } }
    }
    port.postMessage(reply)
  })
}
