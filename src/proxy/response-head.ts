import { headerValue } from './raw-headers.ts'
import type { RawHeaders } from './raw-headers.ts'

/** The head of a response. */
export interface ResponseHead {
  readonly status: number
  /** Media type with its parameters, lower-case; empty = none was sent. */
  readonly contentType: string
  /** The content coding, lower-case; null = it comes as it is. */
  readonly coding: string | null
  /** As the upstream sent them. */
  readonly headers: RawHeaders
}

/** Reads what is looked at of a head. */
export function responseHead(status: number, headers: RawHeaders): ResponseHead {
  return {
    status,
    contentType: headerValue(headers, 'content-type')?.trim().toLowerCase() ?? '',
    coding: contentCoding(headerValue(headers, 'content-encoding')),
    headers,
  }
}

/** What a Content-Encoding header says, lower-case; null = nothing was done to the body. */
export function contentCoding(header: string | null): string | null {
  const coding = header?.trim().toLowerCase() ?? ''
  return coding === '' || coding === 'identity' ? null : coding
}

/** Is it a stream of Server-Sent Events? */
export function isEventStream({ contentType }: ResponseHead): boolean {
  return contentType.startsWith('text/event-stream')
}
