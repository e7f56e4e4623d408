import type { Limits } from '../../config/key-types.ts'
import type { LeaseSettlement } from '../quota-lease.ts'
import type { Estimate, LimitedKey, RateLimitStates, LeaseSize, LimitRefusal } from '../types.ts'

/** A request of a worker to the lease server. Requests are handled in order. */
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
  /** A lease for the next requests; null = none. The worker returns its current lease when it gets one. */
  readonly lease: GrantedLease | null
}

/** The requests that a worker may admit without asking the lease server. */
export interface GrantedLease extends LeaseSize {
  readonly leaseId: number
  readonly lifetimeMs: number
}

/** The replies of the lease server to a worker. */
export interface LimiterReplies {
  readonly replies: readonly AdmissionReply[]
  /** Ids of leases to return at once, because other workers need the unused part. */
  readonly recalledLeases: readonly number[]
}
