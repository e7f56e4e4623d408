import type { Clock } from '../base/clock.ts'
import type { Key, Limits } from '../config/types.ts'

/** Rates go by the monotonic clock, so that no change of the date moves them; budgets by the date. */
export type LimitClock = Pick<Clock, 'monotonic' | 'wall'>

/**
 * Whose limits these are. State belongs to the name; the limits in force are
 * those of the object last seen, compared by identity: hand in the same frozen
 * object for as long as nothing changed.
 */
export type LimitedKey = Pick<Key, 'name' | 'limits'>

/** The limits of one scope: a key as a whole, or a glob of models inside it. */
export type ScopeLimits = Omit<Limits, 'models'>

/** Turns a glob over model names into its matcher. */
export type CompileGlob = (glob: string) => (model: string) => boolean

export interface AdmissionRequest {
  readonly key: LimitedKey
  /** As the client wrote it; null where a request has none: then only the key's own limits count. */
  readonly model: string | null
  readonly estimate: Estimate
}

/** The worst case that can be known beforehand. */
export interface Estimate {
  /** Input and output together. 0 is for requests that surely use none: the token limit lets those pass. */
  readonly tokens: number
  /** Cost in 1e-12 USD; 0 for what is surely free, null where no price is known. */
  readonly pico: bigint | null
}

/** What a request really used; null = unknown, and then the estimate stands. */
export interface ActualUsage {
  readonly tokens: number | null
  readonly pico: bigint | null
}

export type Admission =
  | { readonly ok: true; readonly reservation: Reservation }
  | { readonly ok: false; readonly refusal: Refusal }

/** Ends by the first call of `settle` or `release`; any further call does nothing. */
export interface Reservation {
  /** The request runs no more; what it used is told later, once it is counted. */
  releaseConcurrency(): void
  /**
   * Replaces the estimate by what was used: gives back the rest, or charges in
   * full what went beyond it.
   */
  settle(outcome: ActualUsage): void
  /** For a request that used nothing. It still counts as a request. */
  release(): void
}

/** What is lent: so many requests, which together may need so much; null where no limit asks. */
export interface LeaseSize {
  readonly requests: number
  readonly tokens: number | null
  /** 1e-12 USD. */
  readonly pico: bigint | null
}

export interface Refusal {
  readonly which: RefusalReason
  /** The limit that refused: of the key as a whole (model null), or of a glob in its `limits.models`. */
  readonly scope: { readonly key: string; readonly model: string | null }
  /**
   * Milliseconds after which this very request would be admitted if nothing
   * else were. Where running requests are in the way, whose ends nobody knows,
   * a short guess. null where waiting cannot help.
   */
  readonly retryAfterMs: number | null
  /** Whether a client should wait and try again rather than report the failure. */
  readonly renewsSoon: boolean
  /** English, for the client; names limits, never keys. */
  readonly message: string
}

/** `unpriced`: there is a budget to keep and nobody knows what this model costs. */
export type RefusalReason = 'requests' | 'tokens' | 'concurrent' | 'budget' | 'unpriced'

/** One rate, as the header conventions tell it. */
export interface RateLimitState {
  /** Per minute. */
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until all of the limit is free again, if nothing else is used. */
  readonly resetMs: number
}

/** null where no such limit is set. */
export interface RateLimitStates {
  readonly requests: RateLimitState | null
  readonly tokens: RateLimitState | null
}

/** One sum of past spending. */
export interface Spend {
  readonly key: LimitedKey
  /** As the client wrote it, or null. */
  readonly model: string | null
  /** Any moment of the UTC day in which the requests began, ms since 1970. */
  readonly startedAt: number
  readonly pico: bigint
}

/**
 * Admission by limits. `admit` may answer later, so that a store shared by
 * several processes can stand behind the same interface; nothing else waits.
 */
export interface Limiter {
  /** All limits or none: a refusal takes nothing. */
  admit(ask: AdmissionRequest): Admission | Promise<Admission>
  /** Of all limits that bear on this key and model, the tightest of each kind. */
  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates
  /** Tells budgets what was spent before they began; each listens once. */
  restoreSpend(rows: Iterable<Spend>): void
  /** Puts other defaults in force. Nothing that is counted is lost. */
  reconfigure(defaults: Limits | null): void
}
