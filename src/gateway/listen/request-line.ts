import type { IncomingMessage } from 'node:http'

/** The parser of a connection, for which node has no public API. */
interface ParserSocket { readonly parser?: { getCurrentBuffer?(): Buffer } | null }

/** Tells whether the request has HTTP version 1.0 or 1.1. Node's parser also accepts 0.9 and 2.0. */
export function hasHttp1Version({ httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' || httpVersion === '1.0'
}

/**
 * Tells whether the request line has extra spaces. RFC 9112 section 3 allows one space between its parts. Node's parser accepts any number
 * and does not report it, so this function reads the bytes in the parser's buffer, which begins with the request. The copy costs up to 6
 * µs.
 */
export function hasExtraSpaces({ method = '', url = '', socket }: IncomingMessage): boolean {
  const bytes = (socket as ParserSocket).parser?.getCurrentBuffer?.()
  if (bytes === undefined) return false
  let start = 0
  while (bytes[start] === 13 || bytes[start] === 10) start++
  const line = bytes.toString('latin1', start, start + method.length + url.length + 3)
  return line.startsWith(`${method}  `) || line === `${method} ${url}  `
}
