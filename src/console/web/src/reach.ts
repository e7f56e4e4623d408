const EVERY = new Set(['0.0.0.0', '[::]'])
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** As of `window.location`. */
export interface PageLocation {
  readonly origin: string
  readonly hostname: string
}

/**
 * Where this browser reaches what the gateway listens on.
 *
 * @param configuredUrl - the address as the configuration has it; null = nobody knows
 * @param here - the console's own address
 * @returns an origin, without a slash at its end; null where it is not to be reached from here
 */
export function reachableOrigin(configuredUrl: string | null, here: PageLocation): string | null {
  const url = configuredUrl === null ? null : URL.parse(configuredUrl)
  if (url === null) return null
  const host = here.hostname.includes(':') && !here.hostname.startsWith('[')
    ? `[${here.hostname}]`
    : here.hostname
  if (EVERY.has(url.hostname)) url.hostname = host
  // From elsewhere nobody reaches it there: some proxy stands between.
  else if (LOOPBACK.test(url.hostname) && !LOOPBACK.test(host)) return null
  return url.origin
}
