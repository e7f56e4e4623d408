import type { Upstream } from '../../config/types.ts'
import { holdsKey } from '../../protocols/request/presented-key.ts'
import { ACCOUNT_HEADER, CREDENTIAL_HEADERS, RATE_LIMIT_HEADER, UPLOAD_ADDRESS_HEADERS, VERSION_HEADERS } from '../../protocols/http/vendor-headers.ts'
import { headerValue, type RawHeaders } from '../http/raw-headers.ts'
import { gatewayAddress, withoutCredential } from './upstream-address.ts'

/**
 * The header policy. In both directions, hop-by-hop headers, headers that Connection names, and the headers in the lists below are removed.
 * Upstream: the upstream's default headers are added. Another pass (http-proxy.ts) adds the credential last.
 * To the client: headers that name the operator's upstream or account are removed, and the gateway's headers are added.
 */

/** RFC 9110 section 7.6.1, and older headers with the same meaning. */
const HOP_BY_HOP = [
  'connection', 'keep-alive', 'proxy-authenticate', 'proxy-authentication-info', 'proxy-authorization',
  'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
]

/** Forwarded only from a trusted proxy. */
const FORWARDING_HEADERS = new Set([
  'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto', 'x-real-ip',
])

const NOT_SENT_UPSTREAM = new Set<string>([
  ...HOP_BY_HOP,
  // The gateway sets these headers itself.
  'host', 'content-length', 'expect', 'via', 'x-gateway-request-id',
  // For the gateway.
  'x-gateway-tags',
  // The client's credentials and state.
  ...CREDENTIAL_HEADERS, 'cookie', 'cookie2',
  // A subprotocol can be the client's key. The handshake sends the other subprotocols.
  'sec-websocket-protocol',
  // The gateway sends the version under the upstream's header name.
  ...VERSION_HEADERS,
  ...FORWARDING_HEADERS,
])

const NOT_SENT_TO_CLIENT = new Set([
  ...HOP_BY_HOP,
  // `alt-svc` would direct the client to the upstream's ports.
  'alt-svc',
  // Only the gateway sets these headers.
  'via', 'x-gateway-version', 'x-gateway-request-id', 'x-gateway-upstream', 'x-gateway-attempts', 'x-gateway-translated', 'x-gateway-dropped',
  'x-gateway-estimated',
])

/** Headers with an address. Azure's long operations use `operation-location`. */
const ADDRESSES = new Set(['location', 'content-location', 'operation-location'])

/** Removed from responses in the console, because a browser would apply these headers to the console's origin. */
const BROWSER_HEADERS = new Set([
  'set-cookie', 'set-cookie2', 'clear-site-data', 'strict-transport-security', 'link', 'refresh',
  'nel', 'report-to', 'reporting-endpoints',
  'content-security-policy', 'content-security-policy-report-only', 'x-content-type-options',
])

/** Added to responses in the console: if a response is opened as a page, its scripts must not run in the console's origin. */
const NO_SCRIPT_HEADERS = ['content-security-policy', "default-src 'none'; sandbox", 'x-content-type-options', 'nosniff'] as const

const PSEUDONYM = 'model-gateway'

/** The rules for the headers of all requests to an upstream. Built when the configuration is loaded. */
export interface HeaderRules {
  /** Client headers that are removed or replaced, lower-case. */
  readonly held: ReadonlySet<string>
  /** Client headers that are removed because the upstream's provider does not read them, lower-case. */
  readonly dropped: ReadonlySet<string>
  /** The upstream's configured headers; names in lower case. A client's header replaces a configured header of the same name. */
  readonly own: readonly (readonly [name: string, value: string])[]
  /** The name of the header with the version of the messages protocol. */
  readonly versionHeader: string
}

const NONE: ReadonlySet<string> = new Set()

/** @param withheld headers that clients send for the gateway, lower-case */
export function headerRules(
  { auth, headers, versionHeader }: Upstream, dropped: ReadonlySet<string> = NONE, withheld: readonly string[] = [],
): HeaderRules {
  return { held: NOT_SENT_UPSTREAM.union(new Set([...auth?.headers ?? [], ...withheld])), dropped, own: Object.entries(headers), versionHeader }
}

export interface HeaderSource {
  /** The client's headers. Pseudo-headers of HTTP/2 are skipped. */
  readonly raw: RawHeaders
  readonly requestId: string
  /** Headers that contain one of these keys of the client are removed. */
  readonly presentedKeys?: readonly string[]
  /** HTTP version of the client's connection: `1.1`, `2.0`; absent = the gateway itself makes the request. */
  readonly httpVersion?: string
  /** Address of a trusted proxy, which is added to its x-forwarded-* headers; absent or null = those headers are removed. */
  readonly trustedPeer?: string | null
  /** true = request an uncompressed response, because the gateway reads it. */
  readonly uncompressed?: boolean
  /** true = the body is sent without its content coding. */
  readonly dropContentEncoding?: boolean
  /** Trace headers that name the attempt's span and replace the client's trace headers; flat; absent or empty = keep the client's. */
  readonly trace?: readonly string[]
}

/** W3C Trace Context, section 3. */
const TRACE_HEADERS = new Set(['traceparent', 'tracestate'])

/** The headers to send upstream, flat, without Host and credential. @param contentLength bytes of the body; null = no body */
export function upstreamHeaders(
  { held, dropped, own, versionHeader }: HeaderRules, source: HeaderSource, contentLength: number | null,
): string[] {
  const { raw, trace = [], presentedKeys = [], trustedPeer = null } = source
  const named = connectionNamed(raw)
  const out: string[] = []
  /** Names of the headers that the client sends, which replace configured headers; null = none. */
  let sent: Set<string> | null = null
  let hasContentType = false
  let via = ''
  let version: string | null = null
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    const lower = name.toLowerCase()
    if (presentedKeys.length > 0 && holdsKey(value, presentedKeys)) {
      // Drop a second content-type, because the gateway has read the body as the first content-type says.
      if (lower === 'content-type') {
        hasContentType = true
        if (own.length > 0) (sent ??= new Set()).add(lower)
      }
      continue
    }
    if (held.has(lower)) {
      if (lower === 'via') via = via === '' ? value : `${via}, ${value}`
      else if (VERSION_HEADERS.has(lower)) version ??= value
      else if (trustedPeer !== null && FORWARDING_HEADERS.has(lower)) {
        out.push(name, lower === 'x-forwarded-for' ? `${value}, ${trustedPeer}` : value)
      }
      continue
    }
    if (lower.charCodeAt(0) === 0x3a || named?.has(lower)) continue
    if (lower === 'accept-encoding' && source.uncompressed) continue
    if (trace.length > 0 && TRACE_HEADERS.has(lower)) continue
    // Drop a second content-type, because the gateway has read the body as the first content-type says.
    if (lower === 'content-type') {
      if (hasContentType) continue
      hasContentType = true
    }
    if (lower === 'content-encoding' && source.dropContentEncoding) continue
    if (own.length > 0) (sent ??= new Set()).add(lower)
    out.push(name, value)
  }
  if (version !== null) {
    out.push(versionHeader, version)
    if (own.length > 0) (sent ??= new Set()).add(versionHeader)
  }
  for (const [name, value] of own) if (!sent?.has(name)) out.push(name, value)
  if (source.uncompressed) out.push('accept-encoding', 'identity')
  if (contentLength !== null) out.push('content-length', String(contentLength))
  out.push(...trace, 'x-gateway-request-id', source.requestId)
  out.push('via', appendVia(via, source.httpVersion ?? '1.1'))
  return dropped.size === 0 ? out : out.filter((_, i) => !dropped.has((out[i - i % 2] as string).toLowerCase()))
}

/** Client headers with the same meaning in every protocol. */
const COMMON_HEADERS = new Set(['user-agent', 'accept-language', 'traceparent', 'tracestate', 'baggage', 'via'])

/** The headers of a translated request; flat. @param added headers of the upstream's protocol, by lower-case name */
export function translatedHeaders(raw: RawHeaders, added: Readonly<Record<string, string>>): string[] {
  const out = ['content-type', 'application/json']
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const lower = name.toLowerCase()
    if (COMMON_HEADERS.has(lower) || FORWARDING_HEADERS.has(lower)) out.push(name, raw[i + 1] as string)
  }
  for (const [name, value] of Object.entries(added)) out.push(name, value)
  return out
}

/** The headers for the client, in the upstream's order and spelling. @param raw the upstream's headers */
export function clientHeaders(raw: RawHeaders, { own, httpVersion, dropContentLength: filtered }: ClientHeaderOptions): string[] {
  const named = connectionNamed(raw)
  const out: string[] = []
  let via = ''
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    const lower = name.toLowerCase()
    if (NOT_SENT_TO_CLIENT.has(lower)) {
      if (lower === 'via') via = via === '' ? value : `${via}, ${value}`
      continue
    }
    if (filtered && lower === 'content-length') continue
    if (own.inConsole && BROWSER_HEADERS.has(lower)) continue
    if (ACCOUNT_HEADER.test(lower)) continue
    if (own.limits.length > 0 && RATE_LIMIT_HEADER.test(lower)) continue
    // Skip pseudo-headers of HTTP/2 (0x3a is a colon) and headers that Connection names.
    if (lower.charCodeAt(0) === 0x3a || named?.has(lower)) continue
    if (UPLOAD_ADDRESS_HEADERS.has(lower)) out.push(name, withoutCredential(value))
    else if (own.served && ADDRESSES.has(lower)) out.push(name, gatewayAddress(value, own.served.upstream))
    else out.push(name, value)
  }
  gatewayHeaders(own, out)
  out.push('via', appendVia(via, httpVersion))
  return out
}

interface ClientHeaderOptions {
  readonly own: GatewayHeaders
  /** HTTP version of the upstream's connection: `1.1`, `2.0`. */
  readonly httpVersion: string
  /** true = stages can change the length, or only the protocol's end shows that the response is complete. */
  readonly dropContentLength: boolean
}

export interface GatewayHeaders {
  readonly version: string
  readonly requestId: string
  /** Rate limit headers of the key, flat. They replace the upstream's rate limit headers. */
  readonly limits: readonly string[]
  /** The upstream that responded; absent = none. `attempts`: number of attempts to show the client; null = show neither. */
  readonly served?: { readonly upstream: Upstream; readonly attempts: number | null }
  /** true = the console returns the response, in its own origin. */
  readonly inConsole?: boolean
  /** The client's protocol and the upstream's; absent or null = not translated. */
  readonly translated?: { readonly from: string, readonly to: string } | null | undefined
  /** ms that the request waited in queues; absent or 0 = it did not wait. */
  readonly queuedMs?: number
  /** Client fields that were not sent upstream. */
  readonly dropped?: readonly string[]
}

/** Appends the gateway's headers, which each response and error has, to `headers`. */
export function gatewayHeaders(own: GatewayHeaders, headers: string[] = []): string[] {
  const { version, requestId, limits, served, inConsole, translated, dropped = [] } = own
  headers.push('x-gateway-version', version, 'x-gateway-request-id', requestId)
  for (const part of limits) headers.push(part)
  if (inConsole) headers.push(...NO_SCRIPT_HEADERS)
  if (served && served.attempts !== null) {
    const { upstream, attempts } = served
    headers.push('x-gateway-upstream', percentEncoded(upstream.name), 'x-gateway-attempts', String(attempts))
  }
  const waitedMs = Math.round(own.queuedMs ?? 0)
  if (waitedMs > 0) headers.push('x-gateway-queued-ms', String(waitedMs))
  if (translated) headers.push('x-gateway-translated', `${translated.from}->${translated.to}`)
  // Encode field names, because they come from the client.
  if (dropped.length > 0) headers.push('x-gateway-dropped', dropped.map(percentEncoded).join(', ').slice(0, MAX_DROPPED_LENGTH))
  return headers
}

/** Maximum characters of `x-gateway-dropped`. */
const MAX_DROPPED_LENGTH = 1024

/** Encodes names with characters that a header cannot contain. */
function percentEncoded(text: string): string {
  return /^[\x21-\x7e]*$/.test(text) ? text : encodeURIComponent(text.toWellFormed())
}

/** Appends the gateway to a Via header, as RFC 9110 section 7.6.3 requires. */
export function appendVia(via: string, httpVersion: string): string {
  const hop = `${httpVersion} ${PSEUDONYM}`
  return via === '' ? hop : `${via}, ${hop}`
}

/** Headers that are kept although Connection names them, which RFC 9110 section 7.6.1 forbids: the body depends on them. */
const END_TO_END = new Set(['content-type', 'content-encoding'])

/** @returns names that the sender's Connection header makes hop-by-hop; null = none */
function connectionNamed(raw: RawHeaders): Set<string> | null {
  const connection = headerValue(raw, 'connection')
  if (connection === null) return null
  const lower = connection.toLowerCase()
  if (lower === 'keep-alive' || lower === 'close') return null
  return new Set(lower.split(',').map(token => token.trim())).difference(END_TO_END)
}
