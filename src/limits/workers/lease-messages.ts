import type { Limits } from '../../config/key-types.ts'
import type { LeaseSettlement } from '../quota-lease.ts'
import type { Estimate, LimitedKey, RateLimitStates, LeaseSize, LimitRefusal } from '../types.ts'

/** What a worker asks of the lease server, in order. */
export type LimiterRequest =
  /** From now on `ref` stands for this key in the requests of this worker. */
  | ({ readonly kind: 'key'; readonly ref: number } & LimitedKey)
  | {
    readonly kind: 'admit'
    /** The worker's id of the reservation. It is reused after a refusal or settlement. */
    readonly id: number
    readonly ref: number
    readonly model: string | null
    readonly tokens: number
    readonly pico: bigint | null
    /** How many further requests of this kind the worker wants a lease for; 0 = none. */
    readonly leaseRequests: number
    /** As in AdmissionRequest. */
    readonly isPart?: boolean | undefined
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

/** An open request of a lease that ends: from now on it has its own id. */
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
  readonly refusal: LimitRefusal | null
  readonly rateLimitStates: RateLimitStates
  /** For the next requests. The worker returns its current lease, if it has one. */
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
  /** Ids of leases to return at once, because other workers need the unused part. */
  readonly recalledLeases: readonly number[]
}
