import type { Clock } from '../base/clock.ts'
import type { Key, Limits } from '../config/key-types.ts'

/** Rates use the monotonic clock, so that a changed date does not affect them. Budgets use the date. */
export type LimitClock = Pick<Clock, 'monotonic' | 'wall'>

/**
 * A key, group or upstream with limits. State is kept by name. The limits of the last object count; they are compared by identity,
 * so pass the same frozen object while they do not change.
 */
export interface LimitedKey extends Pick<Key, 'name' | 'limits'> {
  /** Parent groups, the nearest first: their limits apply too. */
  readonly groups?: readonly LimitedKey[] | undefined
  /** For a group: the names of this group and its child groups, whose spend counts here. */
  readonly members?: readonly string[] | undefined
  /** A group or an upstream: defaults do not apply, and a key can have the same name. */
  readonly isGroup?: true | undefined
}

/** Distinguishes a key from a group with the same name: no name has a line break. */
export function idOf({ name, isGroup }: Pick<LimitedKey, 'name' | 'isGroup'>): string {
  return isGroup ? `group\n${name}` : name
}

/** @param defaults of every key */
export function isUnlimited({ limits, groups = [], isGroup }: LimitedKey, defaults: Limits | null): boolean {
  return limits === null && (isGroup || defaults === null) && groups.every(({ limits: above }) => above === null)
}

export type ScopeLimits = Omit<Limits, 'models'>

export type CompileGlob = (glob: string) => (model: string) => boolean

export interface AdmissionRequest {
  readonly key: LimitedKey
  /** As the client sent it; null = none: only the limits of the whole key apply. */
  readonly model: string | null
  readonly estimate: Estimate
  /** A part of an admitted request, such as a response in a WebSocket: counts neither as a request nor as running. */
  readonly isPart?: boolean | undefined
}

/** The worst case of a request, before it runs. */
export interface Estimate {
  /** Input and output together. 0 = the token limit does not apply. */
  readonly tokens: number
  /** 1e-12 USD; 0 = free, null = unpriced. */
  readonly pico: bigint | null
}

/** Actual usage; null = unknown: the estimate counts. */
export type ActualUsage = { readonly tokens: number | null; readonly pico: bigint | null }

export type Admission =
  | { readonly ok: true; readonly reservation: Reservation }
  | { readonly ok: false; readonly refusal: LimitRefusal }

/** Ends with the first call of `settle` or `release`; further calls do nothing. */
export interface Reservation {
  /** The request has ended; its usage is settled later, after counting. */
  releaseConcurrency(): void
  /** Replaces the estimate by the actual usage, even if that is more. */
  settle(outcome: ActualUsage): void
  /** Settles a request without usage. It still counts as a request. */
  release(): void
}

/** What all requests of a lease may use together; null = not limited. */
export interface LeaseSize {
  readonly requests: number
  readonly tokens: number | null
  /** 1e-12 USD. */
  readonly pico: bigint | null
}

export interface LimitRefusal {
  readonly which: LimitReason
  /** Where the refusing limit is: model null = the limits of the whole key or group, else a glob in `limits.models`. */
  readonly scope: { readonly key: string; readonly group: string | null; readonly model: string | null }
  /** ms until this request would be admitted without others; a guess while running requests block it. null = waiting cannot help. */
  readonly retryAfterMs: number | null
  /** Whether a client should wait and retry instead of reporting the error. */
  readonly renewsSoon: boolean
  /** English text for the client. It names limits and groups, never keys. */
  readonly message: string
}

/** `unpriced`: a budget needs the unknown price of the model. `unavailable`: shared limits cannot be checked. */
export type LimitReason = 'requests' | 'tokens' | 'concurrent' | 'budget' | 'unpriced' | 'unavailable'

export interface RateLimitState {
  readonly limit: number
  readonly remaining: number
  /** ms until all of the limit is free again, if nothing else is used. */
  readonly resetMs: number
}

/** null = no such limit. */
export type RateLimitStates = { readonly requests: RateLimitState | null; readonly tokens: RateLimitState | null }

/** A sum of past spend in 1e-12 USD. */
export interface Spend {
  readonly key: LimitedKey
  /** As the client sent it; null = none. */
  readonly model: string | null
  /** Any moment of the UTC day in which the requests began, ms since 1970. */
  readonly startedAt: number
  readonly pico: bigint
}

/** Admission by limits. `admit` may be asynchronous, for limits that several processes share; nothing else waits. */
export interface Limiter {
  /** Reserves at all limits or at none. */
  admit(request: AdmissionRequest): Admission | Promise<Admission>
  /** The tightest limit of each kind for this key and model. */
  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates
  /** 1e-12 USD spent in the current period, by `idOf`, of groups and of whole keys with a budget. Empty if another process counts. */
  budgetSpend(): ReadonlyMap<string, bigint>
  /** Adds past spend; each budget accepts it once. */
  restoreSpend(rows: Iterable<Spend>): void
  /** Changes the default limits and keeps counts. */
  reconfigure(defaults: Limits | null): void
}
