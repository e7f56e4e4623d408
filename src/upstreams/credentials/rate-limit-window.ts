import type { RateLimits, RemainingRateLimit } from './credential-state.ts'
import type { HeaderList } from './credential.ts'

/** Header names such as `x-ratelimit-remaining-requests` and, with a vendor's name, `anthropic-ratelimit-requests-remaining`. */
const NAME = /^[a-z]+-ratelimit-(?:(limit|remaining|reset)-(requests|tokens)|(requests|tokens)-(limit|remaining|reset))$/
/** A credential is near its rate limit if at most this share of the limit is left. */
const LOW_SHARE = 0.05
const DEFAULT_RESET_MS = 60_000
const MAX_RESET_MS = 10 * 60_000
const UNITS: ReadonlyMap<string, number> = new Map(Object.entries({ ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }))

interface Reported { limit: number | null, remaining: number | null, resetMs: number | null }

/** `until`: time from which the report is ignored, ms on the monotonic clock. */
type Window = RemainingRateLimit & { readonly until: number }

/** The rate limits of one credential, as an upstream reports them. `now` is in ms on the monotonic clock. */
export class RateLimitWindow {
  #requests: Window | null = null
  #tokens: Window | null = null
  /** When the upstream reported last, ms since 1970. */
  #at = 0

  /** Reads the headers of a response. @param wall ms since 1970 */
  update(headers: HeaderList, now: number, wall: number): void {
    const reported: Partial<Record<string, Reported>> = {}
    for (let i = 0; i < headers.length; i += 2) {
      const found = NAME.exec((headers[i] as string).toLowerCase())
      if (found === null) continue
      const one = reported[(found[2] ?? found[3]) as string] ??= { limit: null, remaining: null, resetMs: null }
      const value = headers[i + 1] as string
      const field = found[1] ?? found[4]
      if (field === 'reset') one.resetMs = resetOf(value, wall)
      else one[field as 'limit' | 'remaining'] = countOf(value)
    }
    const requests = windowOf(reported['requests'], now)
    const tokens = windowOf(reported['tokens'], now)
    if (requests === null && tokens === null) return
    this.#requests = requests ?? this.#requests
    this.#tokens = tokens ?? this.#tokens
    this.#at = wall
  }

  isLow(now: number): boolean {
    return isLow(this.#requests, now) || isLow(this.#tokens, now)
  }

  /** null = the upstream has reported no rate limits. */
  get limits(): RateLimits | null {
    if (this.#requests === null && this.#tokens === null) return null
    return { at: this.#at, requests: remainingOf(this.#requests), tokens: remainingOf(this.#tokens) }
  }
}

function remainingOf(window: Window | null): RemainingRateLimit | null {
  return window && { limit: window.limit, remaining: window.remaining }
}

function windowOf(reported: Reported | undefined, now: number): Window | null {
  const { limit = null, remaining = null, resetMs = null } = reported ?? {}
  if (limit === null || remaining === null || limit === 0) return null
  return { limit, remaining, until: now + Math.min(resetMs ?? DEFAULT_RESET_MS, MAX_RESET_MS) }
}

function isLow(window: Window | null, now: number): boolean {
  return window !== null && now < window.until && window.remaining / window.limit <= LOW_SHARE
}

function countOf(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}

/** @param text such as `6m0s`, a number of seconds, or an RFC 3339 time @returns ms from now; null = another format */
function resetOf(text: string, wall: number): number | null {
  if (/^\d{4}-\d\d-\d\dT/.test(text)) {
    const at = Date.parse(text)
    return Number.isNaN(at) ? null : Math.max(0, at - wall)
  }
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return null
  const parts = text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)
  return Array.from(parts, ([, amount, unit]) => Number(amount) * (UNITS.get(unit as string) as number)).reduce((a, b) => a + b, 0)
}
