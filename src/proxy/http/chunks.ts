import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'

/** The last chunk, of length 0, without trailers (RFC 9112 section 7.1). */
export const LAST_CHUNK = '0\r\n\r\n'

/** Bytes. A chunk up to this size is copied into its frame, because that is faster than writing the frame separately. */
const COPIED = 16 * 1024

const FRAMED = Symbol('framed')

interface Framed extends ServerResponse { [FRAMED]?: true }

/** Call this after writing the head: from then on `write` does the chunked coding, which is faster than node's three writes per chunk. */
export function frameChunks(response: ServerResponse | Http2ServerResponse): void {
  const res = response as Framed
  if (!res.chunkedEncoding) return
  res.chunkedEncoding = false
  res[FRAMED] = true
}

export function isFramed(res: object): boolean {
  return (res as Framed)[FRAMED] === true
}

/** @param bytes at least one byte @returns false = wait for `drain` */
export function write(response: ServerResponse | Http2ServerResponse, bytes: Buffer, written?: () => void): boolean {
  const res = response as Framed
  if (res[FRAMED] !== true) return res.write(bytes, written)
  const length = `${bytes.length.toString(16)}\r\n`
  if (bytes.length > COPIED) {
    res.write(length, 'latin1')
    res.write(bytes)
    return res.write('\r\n', 'latin1', written)
  }
  const chunk = Buffer.allocUnsafe(length.length + bytes.length + 2)
  chunk.write(length, 'latin1')
  bytes.copy(chunk, length.length)
  chunk[chunk.length - 2] = 13
  chunk[chunk.length - 1] = 10
  return res.write(chunk, written)
}
