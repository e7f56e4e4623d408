const ANY_ADDRESS = new Set(['0.0.0.0', '[::]'])
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** The parts of `window.location` that are needed. */
export interface PageLocation {
  readonly origin: string
  readonly hostname: string
}

/**
 * Address at which this browser reaches a port of the gateway.
 *
 * @param configuredUrl - the listen address in the configuration; null if it is not known
 * @param here - the address of the console in this browser
 * @returns an origin without a trailing slash; null if this browser cannot reach it
 */
export function reachableOrigin(configuredUrl: string | null, here: PageLocation): string | null {
  const url = configuredUrl === null ? null : URL.parse(configuredUrl)
  if (url === null) return null
  const host = here.hostname.includes(':') && !here.hostname.startsWith('[')
    ? `[${here.hostname}]`
    : here.hostname
  if (ANY_ADDRESS.has(url.hostname)) url.hostname = host
  // A loopback address is out of reach for a browser on another machine.
  else if (LOOPBACK.test(url.hostname) && !LOOPBACK.test(host)) return null
  return url.origin
}
