import type { IncomingMessage } from 'node:http'

/** Node has no public name for its parser. */
interface ParserSocket { readonly parser?: { getCurrentBuffer?(): Buffer } | null }

/** Node's parser also accepts the versions 0.9 and 2.0. */
export function hasHttp1Version({ httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' || httpVersion === '1.0'
}

/**
 * RFC 9112 section 3 allows one space between the parts; node's parser accepts any number and does not report it. This reads
 * the bytes that are being parsed, which begin with the request. Copying them costs up to 6 µs.
 */
export function hasExtraSpaces({ method = '', url = '', socket }: IncomingMessage): boolean {
  const bytes = (socket as ParserSocket).parser?.getCurrentBuffer?.()
  if (bytes === undefined) return false
  let start = 0
  while (bytes[start] === 13 || bytes[start] === 10) start++
  const line = bytes.toString('latin1', start, start + method.length + url.length + 3)
  return line.startsWith(`${method}  `) || line === `${method} ${url}  `
}
