import type { Clock } from '../base/clock.ts'
import type { Key, Limits } from '../config/key-types.ts'

/** Rates use the monotonic clock, so that a changed date does not affect them. Budgets use the date. */
export type LimitClock = Pick<Clock, 'monotonic' | 'wall'>

/**
 * The owner of limits: a key, a group or an upstream. State is kept by name. The active limits are
 * those of the object last seen, compared by identity: pass the same frozen
 * object while nothing changes.
 */
export interface LimitedKey extends Pick<Key, 'name' | 'limits'> {
  /** Its parent groups, the nearest first: their limits apply too. Absent = none. */
  readonly groups?: readonly LimitedKey[] | undefined
  /** If this is a group: the names of the group and of its child groups, whose spend counts for this group. */
  readonly members?: readonly string[] | undefined
  /** A group of keys or an upstream: defaults do not apply, and a key can have the same name. */
  readonly isGroup?: true | undefined
}

/** Distinguishes a key from a group with the same name: no name has a line break. */
export function idOf({ name, isGroup }: Pick<LimitedKey, 'name' | 'isGroup'>): string {
  return isGroup ? `group\n${name}` : name
}

/** Whether no limit applies to a key. @param defaults of every key */
export function isUnlimited({ limits, groups = [], isGroup }: LimitedKey, defaults: Limits | null): boolean {
  return limits === null && (isGroup || defaults === null) && groups.every(({ limits: above }) => above === null)
}

/** The limits of one scope: a key as a whole, or a glob of models inside it. */
export type ScopeLimits = Omit<Limits, 'models'>

/** Turns a glob over model names into its matcher. */
export type CompileGlob = (glob: string) => (model: string) => boolean

export interface AdmissionRequest {
  readonly key: LimitedKey
  /** The model as the client sent it; null = none: only the limits of the key as a whole apply. */
  readonly model: string | null
  readonly estimate: Estimate
  /** A part of a request that was admitted, such as a response in a WebSocket: it counts neither as a request nor as running. */
  readonly isPart?: boolean | undefined
}

/** The worst case of a request, before it runs. */
export interface Estimate {
  /** Input and output together. 0 = the token limit does not apply. */
  readonly tokens: number
  /** Picodollars (1e-12 USD); 0 = free, null = unpriced. */
  readonly pico: bigint | null
}

/** What a request used; null = unknown: the estimate counts. */
export interface ActualUsage {
  readonly tokens: number | null
  readonly pico: bigint | null
}

export type Admission =
  | { readonly ok: true; readonly reservation: Reservation }
  | { readonly ok: false; readonly refusal: LimitRefusal }

/** Ends with the first call of `settle` or `release`; further calls do nothing. */
export interface Reservation {
  /** The request has ended. Its usage is settled later, when it is counted. */
  releaseConcurrency(): void
  /**
   * Replaces the estimate by the actual usage: returns the rest, or charges in
   * full what exceeds it.
   */
  settle(outcome: ActualUsage): void
  /** For a request without usage. It still counts as a request. */
  release(): void
}

/** The size of a lease: requests, and what they can use together; null = not limited. */
export interface LeaseSize {
  readonly requests: number
  readonly tokens: number | null
  /** Cost in 1e-12 USD; null = not limited. */
  readonly pico: bigint | null
}

export interface LimitRefusal {
  readonly which: LimitReason
  /** The limit that refused: of the key or a group as a whole (model null), or of a glob in its `limits.models`. */
  readonly scope: { readonly key: string; readonly group: string | null; readonly model: string | null }
  /**
   * ms after which this request would be admitted if no other were. A short guess
   * where running requests are in the way. null where waiting cannot help.
   */
  readonly retryAfterMs: number | null
  /** Whether a client should wait and retry instead of reporting the error. */
  readonly renewsSoon: boolean
  /** English text for the client. It names limits and groups, never keys. */
  readonly message: string
}

/**
 * `unpriced`: there is a budget, and the price of the model is unknown. `unavailable`: limits that several gateways
 * share cannot be checked.
 */
export type LimitReason = 'requests' | 'tokens' | 'concurrent' | 'budget' | 'unpriced' | 'unavailable'

/** The state of one rate limit, as headers report it. */
export interface RateLimitState {
  /** The limit per minute. */
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

/** One sum of past spend. */
export interface Spend {
  readonly key: LimitedKey
  /** The model as the client sent it; null = none. */
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
  /** Reserves at all limits or at none. */
  admit(request: AdmissionRequest): Admission | Promise<Admission>
  /** The tightest limit of each kind for this key and model. */
  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates
  /**
   * What keys with a budget as a whole, and groups, have spent of its current period, 1e-12 USD, by `idOf`; those of
   * which nothing was counted are absent. Empty where another process counts.
   */
  budgetSpend(): ReadonlyMap<string, bigint>
  /** Adds spend from before the budgets existed; each budget accepts it once. */
  restoreSpend(rows: Iterable<Spend>): void
  /** Sets other default limits. Counts are kept. */
  reconfigure(defaults: Limits | null): void
}
