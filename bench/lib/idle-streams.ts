import { once } from 'node:events'
import * as net from 'node:net'
import { streamLoad } from './load.ts'

/** Streams that begin together: more than a listener's backlog would be refused. */
const BATCH_SIZE = 100

/** Opens so many streams, whose first chunk comes when all is over. @returns their connections */
export async function openIdleStreams(port: number, count: number): Promise<net.Socket[]> {
  const { bytes } = streamLoad(1, '', { everyMs: 2 ** 31 - 1 })
  const open: net.Socket[] = []
  while (open.length < count) {
    await Promise.all(Array.from({ length: Math.min(BATCH_SIZE, count - open.length) }, async () => {
      const socket = net.connect({ port, host: '127.0.0.1' })
      open.push(socket)
      socket.write(bytes)
      await once(socket, 'data')
    }))
  }
  return open
}
