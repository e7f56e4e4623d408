import { parentPort } from 'node:worker_threads'
import { messageOf } from '../message-of.ts'
import type { ThreadReply, ThreadRequest, ThrownInThread } from './thread-client.ts'

/**
 * Serves the requests of a ThreadClient in its thread.
 * @param handle returns or resolves with the reply; an error rejects the request
 * @param close frees the resources of the thread after the last request
 * @throws Error outside of a thread
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
