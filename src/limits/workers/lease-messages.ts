import type { Limits } from '../../config/key-types.ts'
import type { LeaseSettlement } from '../quota-lease.ts'
import type { AdmissionRequest, Estimate, LimitedKey, RateLimitStates, LeaseSize, LimitRefusal, Spend } from '../types.ts'

/** A request of a worker to the lease server, which handles them in order. */
export type LimiterRequest =
  /** Later requests of this worker name this key by `ref`. */
  | ({ readonly kind: 'key'; readonly ref: number } & LimitedKey)
  | ({
    readonly kind: 'admit'
    /** The worker's id of the reservation; reused after a refusal or settlement. */
    readonly id: number
    readonly ref: number
    /** The number of further requests for which a lease is wanted; 0 = none. */
    readonly leaseRequests: number
  } & Pick<AdmissionRequest, 'model' | 'isPart'> & Estimate)
  | ({ readonly kind: 'return-lease', readonly leaseId: number, readonly open: readonly OpenRequest[] } & LeaseSettlement)
  | { readonly kind: 'release-concurrency'; readonly id: number }
  /** The outcomes of several reservations, in lists of the same length. */
  | { readonly kind: 'settle'; readonly ids: number[]; readonly tokens: (number | null)[]; readonly pico: (bigint | null)[] }
  | { readonly kind: 'restore'; readonly rows: readonly SharedSpend[] }
  | { readonly kind: 'defaults'; readonly limits: Limits | null }

/** An open request of an ended lease, with its new id. */
export type OpenRequest = Estimate & { readonly id: number; readonly isRunning: boolean }

export type SharedSpend = Omit<Spend, 'key'> & { readonly ref: number }

export interface AdmissionReply {
  readonly id: number
  readonly refusal: LimitRefusal | null
  readonly rateLimitStates: RateLimitStates
  /** The worker returns its current lease when it gets another. */
  readonly lease: GrantedLease | null
}

export type GrantedLease = LeaseSize & { readonly leaseId: number; readonly lifetimeMs: number }

export interface LimiterReplies {
  readonly replies: readonly AdmissionReply[]
  /** Ids of leases to return at once: other workers need the unused part. */
  readonly recalledLeases: readonly number[]
}
