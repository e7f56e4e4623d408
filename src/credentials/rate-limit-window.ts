import type { HeaderList } from './credential.ts'

/** `x-ratelimit-remaining-requests`, or with the name of a vendor `VENDOR-ratelimit-requests-remaining`. */
const NAME = /^[a-z]+-ratelimit-(?:(limit|remaining|reset)-(requests|tokens)|(requests|tokens)-(limit|remaining|reset))$/
/** At this share of its limit a credential is nearly exhausted. */
const LOW_SHARE = 0.05
/** Milliseconds until a limit is free again, where the upstream does not say. */
const DEFAULT_RESET = 60_000
/** Longest time for which a count is believed, in ms. */
const MAX_RESET = 10 * 60_000
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

interface Window {
  limit: number | null
  remaining: number | null
  resetMs: number | null
}

/** What an upstream says of the rate limits of one credential. */
export class RateLimitWindow {
  #share = 1
  /** On the monotonic clock, ms: until then the share counts. */
  #until = 0

  /**
   * Reads the headers of a response.
   *
   * @param now on the monotonic clock, ms
   * @param wall ms since 1970
   */
  update(headers: HeaderList, now: number, wall: number): void {
    const windows: Record<string, Window> = {}
    for (let i = 0; i < headers.length; i += 2) {
      const found = NAME.exec((headers[i] as string).toLowerCase())
      if (found === null) continue
      const kind = (found[2] ?? found[3]) as string
      const window = windows[kind] ??= { limit: null, remaining: null, resetMs: null }
      const value = headers[i + 1] as string
      const field = found[1] ?? found[4]
      if (field === 'reset') window.resetMs = resetOf(value, wall)
      else window[field as 'limit' | 'remaining'] = countOf(value)
    }
    for (const { limit, remaining, resetMs } of Object.values(windows)) {
      if (limit === null || remaining === null || limit === 0) continue
      const share = remaining / limit
      if (share > this.#share && now < this.#until) continue
      this.#share = share
      this.#until = now + Math.min(resetMs ?? DEFAULT_RESET, MAX_RESET)
    }
  }

  /** @param now on the monotonic clock, ms */
  isLow(now: number): boolean {
    return now < this.#until && this.#share <= LOW_SHARE
  }
}

function countOf(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

/** `6m0s`, seconds, or an RFC 3339 time. @returns milliseconds from now; null = it does not say */
function resetOf(text: string, wall: number): number | null {
  if (/^\d{4}-\d\d-\d\dT/.test(text)) {
    const at = Date.parse(text)
    return Number.isNaN(at) ? null : Math.max(0, at - wall)
  }
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return null
  const parts = text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)
  return Array.from(parts, ([, amount, unit]) => Number(amount) * (UNITS[unit as string] as number)).reduce((a, b) => a + b, 0)
}
