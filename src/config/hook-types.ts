import type { ProxyServer } from '../base/outgoing-proxy.ts'
/** A service of the operator that sees requests or responses, and decides about them. */
export interface HookConfig {
  readonly name: string
  /** The URL as text, because a URL cannot be sent between threads. */
  readonly url: string
  readonly onRequest: boolean
  readonly onResponse: boolean
  /** What the service gets of a request or response: only facts about it, also its texts, or also its whole body. */
  readonly send: 'metadata' | 'text' | 'body'
  /** ms from the start of a call to the end of its reply, with the time in the queue. */
  readonly timeout: number
  /** What happens if the service does not reply in time, or not as documented. */
  readonly whenDown: 'allow' | 'refuse'
  /** Running calls of each process at most. */
  readonly concurrency: number
  /** The secret with which calls are signed; null = calls are not signed. */
  readonly secret: string | null
  /** true = the service gets copies after the request, and decides nothing. */
  readonly tap: boolean
  /** true = applies to all requests. */
  readonly all: boolean
  /** A PEM file with additional trusted roots; null = the default roots. */
  readonly ca: string | null
  /** null = direct */
  readonly proxy: ProxyServer | null
}
