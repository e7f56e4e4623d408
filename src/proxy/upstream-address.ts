import type { Upstream } from '../config/types.ts'
import { extractKey } from '../protocols/shared/query.ts'

/** What goes in front of a path behind that url of an upstream: its own path, without a slash at the end. */
export function prefixOf(url: URL): string {
  return url.pathname.replace(/\/+$/, '')
}

/** The client's path as an upstream has it behind its url: its own `v1` replaces `/v1`. */
export function upstreamPath({ v1 }: Upstream, path: string): string {
  if (v1 === null || !hasPathPrefix(path, '/v1')) return path
  return v1 + path.slice('/v1'.length) || '/'
}

/** What begins with a scheme or a slash leaves the place of the request; a backslash is one to browsers. */
const ROOTED = /^(?:https?:|[/\\])/i

/**
 * An address that an upstream gave, as the client reaches it. One at the upstream's own host is a path
 * at the gateway: who follows it needs the upstream's credential, and would show the gateway's key there.
 * All others are the upstream's to know.
 */
export function gatewayAddress(address: string, upstream: Upstream): string {
  const { url } = upstream
  if (url === null) return address
  const there = URL.parse(address, url)
  if (there?.host !== url.host) return address
  if (!ROOTED.test(address)) return withoutCredential(address)
  return withoutCredential(gatewayPath(upstream, url, there.pathname) + there.search + there.hash)
}

/**
 * Is an address that an upstream gave the one that it was just asked at? The scheme does not tell them apart:
 * the gateway would ask there once more by its own.
 *
 * @param path what it was asked for, with its query
 * @returns that address, without its query, which may have a credential in it; null = it is another
 */
export function sameAddress(address: string, { url }: Upstream, path: string): string | null {
  if (url === null || !ROOTED.test(address)) return null
  const there = URL.parse(address, url)
  const asked = URL.parse(path, url)
  if (there?.host !== url.host || there.pathname !== asked?.pathname) return null
  return there.search === asked.search ? there.origin + there.pathname : null
}

/** Without the operator's credential. */
export function withoutCredential(address: string): string {
  return address.replace(/\?[^#]*/, query => extractKey(query).query)
}

/** The client's path that becomes a path at the upstream. */
function gatewayPath({ v1 }: Upstream, url: URL, there: string): string {
  // Two slashes would be another host.
  const path = there.replace(/\/{2,}/g, '/')
  const prefix = prefixOf(url)
  const behind = hasPathPrefix(path, prefix) ? path.slice(prefix.length) || '/' : path
  return v1 !== null && hasPathPrefix(behind, v1) ? `/v1${behind.slice(v1.length)}` : behind
}

function hasPathPrefix(path: string, beginning: string): boolean {
  return path.startsWith(beginning) && (path.length === beginning.length || path[beginning.length] === '/')
}
