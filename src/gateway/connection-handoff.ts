import type { Worker } from 'node:cluster'

/** A message of node's own between the processes, as it goes to a worker or comes back. */
interface InternalMessage {
  readonly cmd?: string
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
}

interface Connection {
  close(): void
}

/**
 * Cuts the connections that were handed to a worker and that it never takes:
 * because it died before, or because it had no descriptor left for them. Node
 * waits for its word on each for ever: they would stay open, and nobody would read
 * from them; and to one who owes it that word, node hands no further ones.
 */
export function closeUnacceptedConnections(worker: Worker): void {
  const { process } = worker
  const handedOut = new Map<number, Connection>()
  /** Numbers of those that have not arrived yet, which they do one by one. */
  const onTheWay: number[] = []
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (message: InternalMessage, ...rest: unknown[]): boolean => {
    if (message.act === 'newconn') {
      handedOut.set(message.seq as number, rest[0] as Connection)
      onTheWay.push(message.seq as number)
    }
    return send(message, ...rest)
  }
  process.on('internalMessage', ({ cmd, ack }: InternalMessage) => {
    if (ack !== undefined) handedOut.delete(ack)
    if (cmd !== 'NODE_HANDLE_ACK' && cmd !== 'NODE_HANDLE_NACK') return
    const arrived = onTheWay.shift()
    if (cmd === 'NODE_HANDLE_ACK' || arrived === undefined) return
    // The message came without its descriptor. As if it had been taken: node closes it, and hands out the next.
    process.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: arrived, accepted: true }, undefined)
  })
  worker.once('exit', () => {
    for (const connection of handedOut.values()) connection.close()
  })
}
