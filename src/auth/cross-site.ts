import type { IncomingHttpHeaders } from 'node:http'

/** Names that no DNS server can point elsewhere (RFC 6761 section 6.3), and addresses of the machine itself. */
const LOOPBACK = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * Whether a page of another site sent the request, through the browser of somebody who can reach the gateway. Browsers
 * send the origin of the page with every request except plain reads (Fetch standard, "Origin header"), and mark a plain
 * read from another site. Pages of this machine, and programs with their own pages (`app://`, `vscode-webview://`), do
 * not count as another site.
 */
export function isCrossSiteRequest(
  { origin, host, ':authority': authority, 'sec-fetch-site': site }: IncomingHttpHeaders,
): boolean {
  // A proxy can use another host name, so the browser decides what the same site is.
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

/** How a request names the gateway, and where it arrives. */
interface NamedRequest {
  readonly headers: IncomingHttpHeaders
  /** The gateway's end of the connection; empty = it is disconnected, or no IP connection. */
  readonly localAddress: string
}

/**
 * Whether the request names another host than the gateway. A page can let its own host name resolve to the gateway's
 * address (DNS rebinding): the browser then treats both as one site, but the Host header still has the page's name.
 *
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
