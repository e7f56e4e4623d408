import type { Clock } from '../base/clock.ts'
import type { Key, Limits } from '../config/key-types.ts'
import type { Ticket, WaitTerms } from './queue/admission-queue.ts'
import type { LimitRefusal } from './queue/limit-refusal.ts'

export type { LimitReason, LimitRefusal } from './queue/limit-refusal.ts'

/** Rates use the monotonic clock, so that changing the date does not affect rates. Budgets use the wall clock. */
export type LimitClock = Pick<Clock, 'monotonic' | 'wall' | 'setTimeout'>

/**
 * A key, group or upstream with limits. The limiter keeps counts by name, and uses the limits of the last object with the name. Limits are
 * compared by identity, so pass the same frozen object as long as the limits do not change.
 */
export interface LimitedKey extends Pick<Key, 'name' | 'limits'> {
  /** The groups above, nearest first. The limits of these groups apply too. */
  readonly groups?: readonly LimitedKey[] | undefined
  /** For a group: the names of the group and of the groups below. Their spend counts for this group. */
  readonly members?: readonly string[] | undefined
  /** true = a group or an upstream, to which default limits do not apply, and whose name a key can have too. */
  readonly isGroup?: true | undefined
}

/** @returns an id that differs for a key and a group with the same name, because no name contains a line break */
export function idOf({ name, isGroup }: Pick<LimitedKey, 'name' | 'isGroup'>): string {
  return isGroup ? `group\n${name}` : name
}

/** @param defaults limits of every key */
export function isUnlimited({ limits, groups = [], isGroup }: LimitedKey, defaults: Limits | null): boolean {
  return limits === null && (isGroup || defaults === null) && groups.every(({ limits: above }) => above === null)
}

export type ScopeLimits = Omit<Limits, 'models'>

export type CompileGlob = (glob: string) => (model: string) => boolean

export interface AdmissionRequest {
  readonly key: LimitedKey
  /** The model's name as the client sent it; null = none, so that only the limits of the whole key apply. */
  readonly model: string | null
  readonly estimate: Estimate
  /** true = a part of an admitted request, such as a response in a WebSocket. A part counts neither as a request nor for concurrency. */
  readonly isPart?: boolean | undefined
}

/** The highest possible usage of a request, estimated before the request runs. */
export interface Estimate {
  /** Input and output tokens. 0 = the token limit does not apply. */
  readonly tokens: number
  /** Cost in 1e-12 USD; 0 = free, null = unpriced. */
  readonly pico: bigint | null
}

/** The actual usage; null = unknown, so that the estimate counts. */
export type ActualUsage = { readonly tokens: number | null; readonly pico: bigint | null }

export type Admission =
  | { readonly ok: true; readonly reservation: Reservation }
  | { readonly ok: false; readonly refusal: LimitRefusal }

/** The first call of `settle` or `release` ends a reservation. Further calls do nothing. */
export interface Reservation {
  /** Call this when the request has ended, before its tokens are counted, which can take long. Call `settle` later. */
  releaseConcurrency(): void
  /** Replaces the estimate by the actual usage, even if the actual usage is higher. */
  settle(outcome: ActualUsage): void
  /** Settles a request without usage. The rate of requests still counts it. */
  release(): void
}

/** The maximum sum that the requests of a lease can use; null = not limited. */
export interface LeaseSize {
  readonly requests: number
  readonly tokens: number | null
  /** 1e-12 USD. */
  readonly pico: bigint | null
}

export interface RateLimitState {
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until the whole limit is free again if no request comes. */
  readonly resetMs: number
}

/** null = there is no limit of that kind. */
export type RateLimitStates = { readonly requests: RateLimitState | null; readonly tokens: RateLimitState | null }

/** A sum of past spend in 1e-12 USD. */
export interface Spend {
  readonly key: LimitedKey
  /** The model's name as the client sent it; null = none. */
  readonly model: string | null
  /** A time in the UTC day in which the requests began, ms since 1970. */
  readonly startedAt: number
  readonly pico: bigint
}

/** Admits requests by limits. Only `admit` can be asynchronous, if several processes share the limits. */
export interface Limiter {
  /** Reserves the estimate at all limits of the key or, if one of them refuses, at no limit. */
  admit(request: AdmissionRequest): Admission | Promise<Admission>
  /**
   * Waits until all limits have room, after `admit` has refused the request.
   * @param done called once, also if the request has left
   */
  wait(request: AdmissionRequest, terms: WaitTerms, done: (admission: Admission) => void): Ticket
  /** The limit of each kind that allows the least for this key and model. */
  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates
  /** 1e-12 USD spent in the current period, by `idOf`, for groups and whole keys with a budget. Empty if another process counts spend. */
  budgetSpend(): ReadonlyMap<string, bigint>
  /** Adds past spend. A budget accepts past spend only in one call, before its first reservation. */
  restoreSpend(rows: Iterable<Spend>): void
  /** Changes the default limits without resetting counts. */
  reconfigure(defaults: Limits | null): void
}
