import type { IncomingHttpHeaders } from 'node:http'

const LOOPBACK = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * Was it sent by a page of another site, in the browser of somebody who can reach the gateway? Browsers tell
 * the page's origin with all but plain reads (Fetch standard, "Origin header"). Pages of this machine and
 * programs with pages of their own (`app://`, `vscode-webview://`) are no other site.
 */
export function isCrossSiteRequest(
  { origin, host, ':authority': authority, 'sec-fetch-site': site }: IncomingHttpHeaders,
): boolean {
  // Behind a proxy that names another host, the browser knows better what is one site.
  if (origin === undefined || site === 'same-origin') return false
  // `null`: a page that was made to hide where it comes from.
  if (!URL.canParse(origin)) return true
  const page = new URL(origin)
  if (page.protocol !== 'http:' && page.protocol !== 'https:') return false
  // Proxies write the port that goes without saying, too.
  const own = URL.parse(`${page.protocol}//${authority ?? host}`)
  return page.host !== own?.host && !LOOPBACK.test(page.hostname)
}
