import type { Socket } from 'node:net'

const CONTINUE = 100
/** An interim status that undici handles. */
const PROCESSING = 102

/** The parser of an HTTP/1.1 connection, which undici stores on the socket. */
interface Parser {
  /** @returns whether a body follows */
  onHeadersComplete(status: number, isUpgrade: boolean, keepsAlive: boolean): number
}

/**
 * Fixes HTTP/1.1 to upstreams: undici closes the connection at a `100 Continue` that it did not request. A client must accept one
 * (RFC 9110 section 15.2). Written for undici 8.12.4. @param socket that undici has taken over; HTTP/2 sockets stay unchanged
 */
export function acceptUnsolicitedContinue(socket: Socket): void {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser')
  if (symbol === undefined) return
  const parser = (socket as unknown as Record<symbol, Parser | null>)[symbol]
  if (!parser) return
  const { onHeadersComplete } = parser
  parser.onHeadersComplete = (status, isUpgrade, keepsAlive) =>
    onHeadersComplete.call(parser, status === CONTINUE ? PROCESSING : status, isUpgrade, keepsAlive)
}
