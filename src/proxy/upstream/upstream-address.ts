import type { Upstream } from '../../config/types.ts'
import { extractKey } from '../../protocols/request/query.ts'

/** The prefix of request paths: the url's path without a final slash. */
export function prefixOf(url: URL): string {
  return url.pathname.replace(/\/+$/, '')
}

/** @returns the path relative to the upstream's url. The upstream's `v1` replaces `/v1` at the beginning of the client's path */
export function upstreamPath({ v1 }: Upstream, path: string): string {
  if (v1 === null || !hasPathPrefix(path, '/v1')) return path
  return v1 + path.slice('/v1'.length) || '/'
}

/** An address that is not relative to the request's path. Browsers treat a backslash as a slash. */
const ROOTED = /^(?:https?:|[/\\])/i

/**
 * Rewrites an address for the client. An address at the upstream's host becomes a path at the gateway, because a direct request would lack
 * the upstream's credential and send the gateway's key to the upstream. Other addresses are not changed.
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
 * Checks whether an address is the one that was just requested, ignoring the scheme. @param path requested path with its query
 * @returns the address without its query, which may contain a credential; null = another address
 */
export function sameAddress(address: string, { url }: Upstream, path: string): string | null {
  if (url === null || !ROOTED.test(address)) return null
  const there = URL.parse(address, url)
  const asked = URL.parse(path, url)
  if (there?.host !== url.host || there.pathname !== asked?.pathname) return null
  return there.search === asked.search ? there.origin + there.pathname : null
}

/** Removes the operator's credential from an address. */
export function withoutCredential(address: string): string {
  return address.replace(/\?[^#]*/, query => extractKey(query).query)
}

/** @returns the path at the gateway that leads to the path `there` at the upstream */
function gatewayPath({ v1 }: Upstream, url: URL, there: string): string {
  // Join slashes, because a path that begins with two slashes would be read as a host.
  const path = there.replace(/\/{2,}/g, '/')
  const prefix = prefixOf(url)
  const behind = hasPathPrefix(path, prefix) ? path.slice(prefix.length) || '/' : path
  return v1 !== null && hasPathPrefix(behind, v1) ? `/v1${behind.slice(v1.length)}` : behind
}

function hasPathPrefix(path: string, beginning: string): boolean {
  return path.startsWith(beginning) && (path.length === beginning.length || path[beginning.length] === '/')
}
