import { isoTime, type WallTime } from '../../base/clock.ts'
import { addressUrl } from '../../config/listen-address.ts'
import type { Address } from '../../config/types.ts'

export function isoTimeOrNull(at: WallTime | null): string | null {
  return at === null ? null : isoTime(at)
}

/**
 * Isolates a model's name, which a client chose: right-to-left text or direction marks must not change the text around the name (UAX 9).
 */
export function isolatedName(name: string): string {
  return /^[ -~]*$/.test(name) ? name : `\u2068${name.replace(/[\u2066-\u2069]/g, '')}\u2069`
}

/** The URL of an address: `http://0.0.0.0:8080`. null = the system chooses the port, or another process opened the socket. */
export function urlOf({ host, port, fd }: Address, isSecure: boolean): string | null {
  if (port === 0 || fd !== undefined) return null
  return addressUrl({ host, port }, isSecure)
}
