import type { IncomingHttpHeaders } from 'node:http'
import { holdsKey } from '../protocols/request/presented-key.ts'
import { GATEWAY_KEY_HEADER, KEY_HEADERS, OWN_CREDENTIAL_HEADERS, SUBPROTOCOL_KEY_PREFIX } from '../protocols/http/vendor-headers.ts'

const SUBPROTOCOL_KEY = new RegExp(`(?:^|,)\\s*${RegExp.escape(SUBPROTOCOL_KEY_PREFIX)}([^\\s,]+)\\s*(?:,|$)`)

/**
 * The keys that a request presents, in this order: `Authorization`, vendors' headers, query, WebSocket subprotocol.
 * @param queryKey the value of `?key=` or `?api-key=`, or null
 */
export function presentedKeys(headers: IncomingHttpHeaders, queryKey: string | null): string[] {
  const keys: string[] = []
  // The scheme is case-insensitive (RFC 9110 section 11.1).
  const bearer = headers.authorization && /^bearer[ \t]+(\S+)[ \t]*$/i.exec(headers.authorization)?.[1]
  if (bearer) keys.push(bearer)
  for (const name of KEY_HEADERS) {
    const key = headers[name]
    if (typeof key === 'string' && key !== '') keys.push(key)
  }
  if (queryKey !== null && queryKey !== '') keys.push(queryKey)
  const offered = headers['sec-websocket-protocol']
  const subprotocol = offered && SUBPROTOCOL_KEY.exec(offered)?.[1]
  if (subprotocol) keys.push(subprotocol)
  return keys
}

/** What a request with the header `x-gateway-key` presents: every other credential is the client's own. */
export interface SeparateCredentials {
  /** The only text that is looked up as a key; empty = none. */
  readonly gatewayKey: string
  /** The client's own credential for a provider, flat names and values; empty = none. */
  readonly own: readonly string[]
}

/** @param headers with `x-gateway-key` */
export function separateCredentials(headers: IncomingHttpHeaders): SeparateCredentials {
  const gatewayKey = String(headers[GATEWAY_KEY_HEADER])
  const own = OWN_CREDENTIAL_HEADERS.flatMap(name => {
    const value = headers[name]
    // Some tools send the key of the gateway in every header that they know.
    return typeof value === 'string' && value !== '' && secretOf(value) !== gatewayKey ? [name, value] : []
  })
  return { gatewayKey, own }
}

/** The secrets of both, for removal from other headers and the query. */
export function separateSecrets({ gatewayKey, own }: SeparateCredentials): string[] {
  return [gatewayKey, ...own.filter((_, i) => i % 2 === 1).map(secretOf)]
}

/** The value without the scheme before it, in linear time. */
function secretOf(value: string): string {
  const text = value.trimEnd()
  return text.slice(Math.max(text.lastIndexOf(' '), text.lastIndexOf('\t')) + 1)
}

/** The offered WebSocket subprotocols without credentials. @param keys that the client presented */
export function withoutSubprotocolKey(offered: string, keys: readonly string[] = []): string {
  return offered
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '' && !name.startsWith(SUBPROTOCOL_KEY_PREFIX) && !holdsKey(name, keys))
    .join(', ')
}
