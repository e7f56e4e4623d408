import type { Worker } from 'node:cluster'

/** A message of node's own cluster, as it goes to a worker or comes back. */
interface Internal {
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
}

interface Connection {
  close(): void
}

/**
 * Cuts the connections that were handed to a worker which died before it had taken
 * them. Node waits for its word on each for ever: they would stay open, and nobody
 * would read from them.
 */
export function cutWhenItDies(worker: Worker): void {
  const { process } = worker
  const handedOut = new Map<number, Connection>()
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (message: Internal, ...rest: unknown[]): boolean => {
    if (message.act === 'newconn') handedOut.set(message.seq as number, rest[0] as Connection)
    return send(message, ...rest)
  }
  process.on('internalMessage', ({ ack }: Internal) => {
    if (ack !== undefined) handedOut.delete(ack)
  })
  worker.once('exit', () => {
    for (const connection of handedOut.values()) connection.close()
  })
}
