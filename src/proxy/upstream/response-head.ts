import { GatewayError } from '../../base/errors.ts'
import { headerValue, type RawHeaders } from '../http/raw-headers.ts'
import type { Controller } from './transport.ts'

export interface ResponseHead {
  readonly status: number
  /** Media type with parameters, lower-case; empty = none was sent. */
  readonly contentType: string
  /** Content coding, lower-case; null = none. */
  readonly coding: string | null
  readonly headers: RawHeaders
  /** HTTP version of the connection: `1.1`, `2.0`. */
  readonly httpVersion: string
}

export function responseHead(status: number, headers: RawHeaders, httpVersion = '1.1'): ResponseHead {
  const coding = headerValue(headers, 'content-encoding')
  return {
    status,
    contentType: headerValue(headers, 'content-type')?.trim().toLowerCase() ?? '',
    coding: coding === null ? null : contentCoding(coding),
    headers,
    httpVersion,
  }
}

export function withHeaders(head: ResponseHead, headers: RawHeaders): ResponseHead {
  return headers === head.headers ? head : responseHead(head.status, headers, head.httpVersion)
}

/** Lower-case; null = none. */
export function contentCoding(header: string): string | null {
  const coding = header.trim().toLowerCase()
  return coding === '' || coding === 'identity' ? null : coding
}

export function isEventStream({ contentType }: Pick<ResponseHead, 'contentType'>): boolean {
  return contentType.startsWith('text/event-stream')
}

/** Reads undici's head. @throws GatewayError upstream_invalid if the status (RFC 9110 section 15) or the transfer coding is invalid */
export function receivedHead(status: number, raw: Controller['rawHeaders']): ResponseHead {
  if (status < 200 || status > 599) throw new GatewayError('upstream_invalid', `the upstream sent the status ${status}`)
  if (raw && !Array.isArray(raw)) return responseHead(status, flatten(raw), '2.0')
  const headers = decode(raw ?? [])
  refuseTransferCoding(headers)
  return responseHead(status, headers)
}

/** Refuses transfer codings other than chunked: requests do not allow them (no TE), and the client would get the body still encoded. */
function refuseTransferCoding(headers: RawHeaders): void {
  const coding = headerValue(headers, 'transfer-encoding')
  if (coding === null || /^\s*(chunked|identity)?\s*$/i.test(coding)) return
  throw new GatewayError('upstream_invalid', `the upstream used the transfer coding '${coding}', which is not supported`)
}

function decode(raw: readonly (Buffer | string)[]): string[] {
  const headers: string[] = []
  // Latin-1 keeps every byte of a value (RFC 9110 section 5.5).
  for (const part of raw) headers.push(typeof part === 'string' ? part : part.toString('latin1'))
  return headers
}

function flatten(headers: Record<string, string | string[] | undefined>): string[] {
  const flat: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (Array.isArray(value)) for (const each of value) flat.push(name, each)
    else if (value !== undefined) flat.push(name, value)
  }
  return flat
}
