const EVERY = new Set(['0.0.0.0', '[::]'])
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** As of `window.location`. */
interface Here {
  readonly origin: string
  readonly hostname: string
}

/**
 * Where clients send what the playground sends.
 *
 * @param told - where the gateway listens, as its configuration has it; null = nobody knows
 * @param here - the console's own address, which takes the same requests
 * @returns without a slash at its end
 */
export function baseUrlFor(told: string | null, here: Here): string {
  const url = told === null ? null : URL.parse(told)
  if (url === null) return here.origin
  const host = here.hostname.includes(':') && !here.hostname.startsWith('[') ? `[${here.hostname}]`
    : here.hostname
  if (EVERY.has(url.hostname)) url.hostname = host
  // From elsewhere nobody reaches it there: some proxy stands between.
  else if (LOOPBACK.test(url.hostname) && !LOOPBACK.test(host)) return here.origin
  return url.origin
}
