import { isoTime } from '../../base/clock.ts'
import type { WallTime } from '../../base/clock.ts'
import { addressUrl } from '../../config/listen-address.ts'
import type { Address } from '../../config/types.ts'

/** As isoTime; null stays null. */
export function isoTimeOrNull(at: WallTime | null): string | null {
  return at === null ? null : isoTime(at)
}

/**
 * A name for use in a sentence. Clients choose model names; a name with right-to-left text or direction marks must
 * not affect the text around it (UAX 9, isolates).
 */
export function isolatedName(name: string): string {
  return /^[ -~]*$/.test(name) ? name : `\u2068${name.replace(/[\u2066-\u2069]/g, '')}\u2069`
}

/**
 * A listening address as a URL: `http://0.0.0.0:8080`.
 *
 * @returns null = the system chooses the port, or another process opened the socket
 */
export function urlOf({ host, port, fd }: Address, isSecure: boolean): string | null {
  if (port === 0 || fd !== undefined) return null
  return addressUrl({ host, port }, isSecure)
}
