import type { Limits } from '../../config/key-types.ts'
import type { WaitTerms } from '../queue/admission-queue.ts'
import type { LeaseSettlement } from '../quota-lease.ts'
import type { AdmissionRequest, Estimate, LimitedKey, RateLimitStates, LeaseSize, LimitRefusal, Spend } from '../types.ts'

/** A message of a worker to the lease server, which handles messages in order. */
export type LimiterRequest =
  /** Defines a key, which later messages of this worker name by `ref`. */
  | ({ readonly kind: 'key'; readonly ref: number } & LimitedKey)
  | ({
    readonly kind: 'admit'
    /** The worker's id for the reservation. The worker reuses the id after a refusal or the settlement. */
    readonly id: number
    readonly ref: number
    /** The number of further requests for which the worker asks for a lease; 0 = no lease. */
    readonly leaseRequests: number
  } & Pick<AdmissionRequest, 'model' | 'isPart'> & Estimate)
  /** Asks for a decision later: when the limits have room, or after `leave`. */
  | ({ readonly kind: 'wait'; readonly id: number; readonly ref: number; readonly terms: WaitTerms } & Pick<AdmissionRequest, 'model'> & Estimate)
  /** The request with the id `id` no longer waits. */
  | { readonly kind: 'leave'; readonly id: number }
  | ({ readonly kind: 'return-lease', readonly leaseId: number, readonly open: readonly OpenRequest[] } & LeaseSettlement)
  | { readonly kind: 'release-concurrency'; readonly id: number }
  /** The usage of several reservations, in lists of equal length. */
  | { readonly kind: 'settle'; readonly ids: number[]; readonly tokens: (number | null)[]; readonly pico: (bigint | null)[] }
  | { readonly kind: 'restore'; readonly rows: readonly SharedSpend[] }
  | { readonly kind: 'defaults'; readonly limits: Limits | null }

/** An open request of an ended lease, with the id for its own reservation. */
export type OpenRequest = Estimate & { readonly id: number; readonly isRunning: boolean }

export type SharedSpend = Omit<Spend, 'key'> & { readonly ref: number }

export interface AdmissionReply {
  readonly id: number
  readonly refusal: LimitRefusal | null
  /** null = unchanged. */
  readonly rateLimitStates: RateLimitStates | null
  /** A granted lease; null = none. The worker returns its current lease when it gets another lease. */
  readonly lease: GrantedLease | null
}

export type GrantedLease = LeaseSize & { readonly leaseId: number; readonly lifetimeMs: number }

export interface LimiterReplies {
  readonly replies: readonly AdmissionReply[]
  /** Ids of the leases that the worker must return at once, because other workers need their unused part. */
  readonly recalledLeases: readonly number[]
}
