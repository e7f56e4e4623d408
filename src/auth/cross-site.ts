import type { IncomingHttpHeaders } from 'node:http'

/** Names that no DNS server can point elsewhere (RFC 6761 section 6.3), and addresses of the machine itself. */
const LOOPBACK = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * Did a page of another site send the request, through the browser of somebody who can reach the gateway? Browsers send
 * the page's origin with every request except plain reads (Fetch standard, "Origin header"), and mark plain reads from
 * another site. Pages of this machine, and programs with their own pages (`app://`), do not count as another site.
 */
export function isCrossSiteRequest({ origin, host, ':authority': authority, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  // A proxy can use another host name: the browser decides whether both are one site.
  if (origin === undefined) return site === 'cross-site'
  if (site === 'same-origin') return false
  // `null`: the page hides its origin.
  if (!URL.canParse(origin)) return true
  const page = new URL(origin)
  if (page.protocol !== 'http:' && page.protocol !== 'https:') return false
  // Proxies can write the default port too.
  const own = URL.parse(`${page.protocol}//${authority ?? host}`)
  return page.host !== own?.host && !LOOPBACK.test(page.hostname)
}

interface NamedRequest {
  readonly headers: IncomingHttpHeaders
  /** The gateway's end of the connection; empty = disconnected, or not an IP connection. */
  readonly localAddress: string
}

/**
 * Does the request name another host than the gateway? With DNS rebinding, a page's own host name resolves to the gateway's
 * address: the browser treats both as one site, but the Host header still has the page's name.
 * @param hosts `server.hosts`; if it is empty, only connections to a loopback address are checked
 */
export function namesForeignHost({ headers, localAddress }: NamedRequest, hosts: readonly string[]): boolean {
  const named = headers[':authority'] ?? headers.host
  if (named === undefined || (hosts.length === 0 && !isLoopbackAddress(localAddress))) return false
  const name = URL.parse(`http://${String(named)}`)?.hostname.replace(/\.$/, '') ?? ''
  return !LOOPBACK.test(name) && !hosts.includes(name)
}

function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address)
}
