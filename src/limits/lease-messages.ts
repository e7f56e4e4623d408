import type { Limits } from '../config/key-types.ts'
import type { LeaseSettlement } from './quota-lease.ts'
import type { Estimate, LimitedKey, RateLimitStates, LeaseSize, Refusal } from './types.ts'

/** What a worker asks of the lease server, in order. */
export type LimiterRequest =
  /** From now on `ref` is this key in the requests of this worker. */
  | ({ readonly kind: 'key'; readonly ref: number } & LimitedKey)
  | {
    readonly kind: 'admit'
    /** The worker's id of the reservation; used again once this one is refused or settled. */
    readonly id: number
    readonly ref: number
    readonly model: string | null
    readonly tokens: number
    readonly pico: bigint | null
    /** For so many further requests like this one a lease is wanted; 0 = none. */
    readonly leaseRequests: number
  }
  | ({ readonly kind: 'return-lease', readonly leaseId: number, readonly open: readonly OpenRequest[] } & LeaseSettlement)
  | { readonly kind: 'release-concurrency'; readonly id: number }
  /** The outcomes of several reservations, in lists of the same length. */
  | {
    readonly kind: 'settle'
    readonly ids: number[]
    readonly tokens: (number | null)[]
    readonly pico: (bigint | null)[]
  }
  | { readonly kind: 'restore'; readonly rows: readonly SharedSpend[] }
  | { readonly kind: 'defaults'; readonly limits: Limits | null }

/** A request that was admitted on a lease and is still open: from now on it has an id of its own. */
export interface OpenRequest extends Estimate {
  readonly id: number
  readonly isRunning: boolean
}

export interface SharedSpend {
  readonly ref: number
  readonly model: string | null
  readonly startedAt: number
  readonly pico: bigint
}

/** The reply to one `admit`. */
export interface AdmissionReply {
  readonly id: number
  /** null = admitted. */
  readonly refusal: Refusal | null
  readonly rateLimitStates: RateLimitStates
  /** For the next requests. The worker returns the lease that it has, if any. */
  readonly lease: GrantedLease | null
}

/** What a worker may admit without asking. */
export interface GrantedLease extends LeaseSize {
  readonly leaseId: number
  readonly lifetimeMs: number
}

/** What a worker gets from the lease server. */
export interface LimiterReplies {
  readonly replies: readonly AdmissionReply[]
  /** Ids of leases to return at once: other workers need what is unused. */
  readonly recalledLeases: readonly number[]
}
