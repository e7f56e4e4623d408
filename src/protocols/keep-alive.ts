import type { ProtocolName } from './shared/names.ts'

/**
 * What keeps a stream of events alive that has nothing to say, and is passed over by the protocol's clients.
 */
export function keepAlive(protocol: ProtocolName): string {
  return protocol === 'messages' ? 'event: ping\ndata: {"type": "ping"}\n\n' : ': keep-alive\n\n'
}

/** An upstream's own error as an event of the protocol's: the shapes are the same. @param json in one line */
export function errorEvent(protocol: ProtocolName, json: string): string {
  return protocol === 'messages' ? `event: error\ndata: ${json}\n\n` : `data: ${json}\n\n`
}
