import type { Worker } from 'node:cluster'

/** A message of node:cluster between the primary process and a worker. */
interface InternalMessage { readonly cmd?: string, readonly act?: string, readonly seq?: number, readonly ack?: number }

interface Connection { close(): void }

/**
 * Closes connections that were sent to a worker but will never be accepted, because the worker died or had no descriptor left. Node waits
 * for each acknowledgement without a limit: such a connection would stay open unread, and the worker would get no further connections.
 */
export function closeUnacceptedConnections(worker: Worker): void {
  const { process } = worker
  const unacknowledged = new Map<number, Connection>()
  /** Sequence numbers of connections in the order of sending. Handles arrive one by one in this order. */
  const inTransit: number[] = []
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  process.send = (message: InternalMessage, ...rest: unknown[]): boolean => {
    if (message.act === 'newconn') {
      unacknowledged.set(message.seq as number, rest[0] as Connection)
      inTransit.push(message.seq as number)
    }
    return send(message, ...rest)
  }
  process.on('internalMessage', ({ cmd, ack }: InternalMessage) => {
    if (ack !== undefined) unacknowledged.delete(ack)
    if (cmd !== 'NODE_HANDLE_ACK' && cmd !== 'NODE_HANDLE_NACK') return
    const arrived = inTransit.shift()
    if (cmd === 'NODE_HANDLE_ACK' || arrived === undefined) return
    // The message arrived without its descriptor. The acknowledgement makes node close the connection and send the next one.
    process.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: arrived, accepted: true }, undefined)
  })
  worker.once('exit', () => {
    for (const connection of unacknowledged.values()) connection.close()
  })
}
