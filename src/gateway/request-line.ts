import type { IncomingMessage } from 'node:http'

/** Node has no public name for its parser. */
interface ParserSocket {
  readonly parser?: { getCurrentBuffer?(): Buffer } | null
}

/** Node's parser takes the versions 0.9 and 2.0 as well. */
export function hasHttp1Version({ httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' || httpVersion === '1.0'
}

/**
 * Whether more than one space is between the parts of a request line. RFC 9112 section 3 has one; node's parser takes
 * any number, and does not tell. So this reads the bytes that are being parsed, which have to begin with the request.
 * Copying them costs up to 6 µs.
 */
export function hasExtraSpaces({ method = '', url = '', socket }: IncomingMessage): boolean {
  const bytes = (socket as ParserSocket).parser?.getCurrentBuffer?.()
  if (bytes === undefined) return false
  let start = 0
  while (bytes[start] === 13 || bytes[start] === 10) start++
  const line = bytes.toString('latin1', start, start + method.length + url.length + 3)
  return line.startsWith(`${method}  `) || line === `${method} ${url}  `
}
