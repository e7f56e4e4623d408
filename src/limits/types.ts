import type { Clock } from '../base/clock.ts'
import type { Key, Limits } from '../config/key-types.ts'

/** Rates go by the monotonic clock, so that no change of the date moves them; budgets by the date. */
export type LimitClock = Pick<Clock, 'monotonic' | 'wall'>

/**
 * Whose limits these are. State belongs to the name. The active limits are
 * those of the object last seen, compared by identity: pass the same frozen
 * object while nothing changes.
 */
export interface LimitedKey extends Pick<Key, 'name' | 'limits'> {
  /** The groups above it, the nearest first: their limits hold as well. Absent = none. */
  readonly groups?: readonly LimitedKey[] | undefined
  /** Of a group: the names of itself and of those below it. What their keys spend counts here. */
  readonly members?: readonly string[] | undefined
  /** It is a group of keys, or an upstream: no defaults hold for it, and its name says nothing of a key's. */
  readonly isGroup?: true | undefined
}

/** Tells keys and groups apart, which may have the same names: no name has a line break. */
export function idOf({ name, isGroup }: Pick<LimitedKey, 'name' | 'isGroup'>): string {
  return isGroup ? `group\n${name}` : name
}

/** Does no limit bear on a key? @param defaults of every key */
export function isUnlimited({ limits, groups = [], isGroup }: LimitedKey, defaults: Limits | null): boolean {
  return limits === null && (isGroup || defaults === null) && groups.every(({ limits: above }) => above === null)
}

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
  /** Input and output together. 0: uses none, and the token limit lets it pass. */
  readonly tokens: number
  /** Picodollars (1e-12 USD); 0 = free, null = no price is known. */
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
  /** The request has ended. What it used is settled later, once it is counted. */
  releaseConcurrency(): void
  /**
   * Replaces the estimate by the actual usage: returns the rest, or charges in
   * full what exceeds it.
   */
  settle(outcome: ActualUsage): void
  /** For a request that used nothing. It still counts as a request. */
  release(): void
}

/** The size of a lease: requests, and what they may use together; null where no limit counts it. */
export interface LeaseSize {
  readonly requests: number
  readonly tokens: number | null
  /** 1e-12 USD. */
  readonly pico: bigint | null
}

export interface Refusal {
  readonly which: RefusalReason
  /** The limit that refused: of the key or a group as a whole (model null), or of a glob in its `limits.models`. */
  readonly scope: { readonly key: string; readonly group: string | null; readonly model: string | null }
  /**
   * ms after which this request would be admitted if no other were. A short guess
   * where running requests are in the way. null where waiting cannot help.
   */
  readonly retryAfterMs: number | null
  /** Whether a client should wait and try again rather than report the failure. */
  readonly renewsSoon: boolean
  /** English, for the client; names limits and groups, never keys. */
  readonly message: string
}

/**
 * `unpriced`: there is a budget, and the price of the model is unknown. `unavailable`: limits that several gateways
 * share cannot be checked.
 */
export type RefusalReason = 'requests' | 'tokens' | 'concurrent' | 'budget' | 'unpriced' | 'unavailable'

/** The state of one rate limit, as headers report it. */
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
 * Admission by limits. `admit` may be asynchronous, for limits that several
 * processes share; nothing else waits.
 */
export interface Limiter {
  /** All limits or none: a refusal takes nothing. */
  admit(request: AdmissionRequest): Admission | Promise<Admission>
  /** Of all limits that bear on this key and model, the tightest of each kind. */
  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates
  /**
   * What keys with a budget as a whole, and groups, have spent of its current period, 1e-12 USD, by `idOf`; those of
   * which nothing was counted are absent. Empty where another process counts.
   */
  budgetSpend(): ReadonlyMap<string, bigint>
  /** Adds what was spent before the budgets began; each accepts it once. */
  restoreSpend(rows: Iterable<Spend>): void
  /** Activates other defaults. What is counted stays counted. */
  reconfigure(defaults: Limits | null): void
}
