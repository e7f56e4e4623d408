import { GatewayError } from '../base/errors.ts'
import { headerValue } from './raw-headers.ts'
import type { RawHeaders } from './raw-headers.ts'
import type { Controller } from './transport.ts'

/** The headers of a response, flat, and what the connection speaks that brought them: `1.1`, `2.0`. */
export interface ResponseHeaders {
  readonly headers: RawHeaders
  readonly httpVersion: string
}

/**
 * Reads headers as undici gives them.
 *
 * @throws GatewayError upstream_invalid where they tell of a transfer coding that nobody has asked for
 */
export function readResponseHeaders(raw: Controller['rawHeaders']): ResponseHeaders {
  if (raw && !Array.isArray(raw)) return { headers: flatten(raw), httpVersion: '2.0' }
  const headers = decode(raw ?? [])
  refuseTransferCoding(headers)
  return { headers, httpVersion: '1.1' }
}

/**
 * The head of a response for http-proxy-3, as its `fetch` option has to return it; the body goes another way.
 *
 * @throws GatewayError upstream_invalid where the status is none of HTTP (RFC 9110 section 15)
 */
export function toResponse(status: number, headers: RawHeaders): Response {
  if (status < 200 || status > 599) throw new GatewayError('upstream_invalid', `the upstream sent the status ${status}`)
  const response = new Response(null, { status })
  for (let i = 0; i < headers.length; i += 2) {
    response.headers.append(headers[i] as string, headers[i + 1] as string)
  }
  return response
}

/** Requests have no TE: what is compressed below its chunks would reach the client as if it were plain. */
function refuseTransferCoding(headers: RawHeaders): void {
  const coding = headerValue(headers, 'transfer-encoding')
  if (coding === null || /^\s*(chunked|identity)?\s*$/i.test(coding)) return
  throw new GatewayError('upstream_invalid', `the upstream used the transfer coding '${coding}', which is not supported`)
}

function decode(raw: readonly (Buffer | string)[]): string[] {
  // Latin-1 keeps every byte of a value (RFC 9110 section 5.5).
  return raw.map(part => (typeof part === 'string' ? part : part.toString('latin1')))
}

/** HTTP/2 headers come as an object. */
function flatten(headers: Record<string, string | string[] | undefined>): string[] {
  const flat: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (Array.isArray(value)) for (const each of value) flat.push(name, each)
    else if (value !== undefined) flat.push(name, value)
  }
  return flat
}
