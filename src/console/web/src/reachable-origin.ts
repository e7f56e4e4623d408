const ANY_ADDRESS = new Set(['0.0.0.0', '[::]'])
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** The parts of `window.location` that are used. */
export interface PageLocation {
  readonly origin: string
  readonly hostname: string
}

/**
 * The origin at which this browser reaches a port of the gateway.
 *
 * @param configuredUrl - URL of the listening address in the configuration; null = not known
 * @param here - location of the console in this browser
 * @returns an origin without a final slash; null = this browser cannot reach the port
 */
export function reachableOrigin(configuredUrl: string | null, here: PageLocation): string | null {
  const url = configuredUrl === null ? null : URL.parse(configuredUrl)
  if (url === null) return null
  const host = here.hostname.includes(':') && !here.hostname.startsWith('[')
    ? `[${here.hostname}]`
    : here.hostname
  if (ANY_ADDRESS.has(url.hostname)) url.hostname = host
  // A browser on another machine cannot reach a loopback address.
  else if (LOOPBACK.test(url.hostname) && !LOOPBACK.test(host)) return null
  return url.origin
}
