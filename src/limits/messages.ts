import type { Limits } from '../config/types.ts'
import type { LeaseSettlement } from './quota-lease.ts'
import type { Estimate, RateLimitStates, LeaseSize, Refusal } from './types.ts'

/** What a worker asks of the limiter that all workers share, in the order in which it was asked. */
export type LimiterRequest =
  /** Whom `ref` stands for from now on in what this worker says. */
  | { readonly kind: 'key'; readonly ref: number; readonly name: string; readonly limits: Limits | null }
  | {
    readonly kind: 'admit'
    /** The worker's number of the reservation; given to another once this one is refused or settled. */
    readonly id: number
    readonly ref: number
    readonly model: string | null
    readonly tokens: number
    readonly pico: bigint | null
    /** So many further requests like this one are likely soon: a loan for them is asked for. */
    readonly soon: number
  }
  | ({ readonly kind: 'repay', readonly loan: number, readonly open: readonly OpenRequest[] } & LeaseSettlement)
  | { readonly kind: 'leave'; readonly id: number }
  /** The outcomes of several, in lists of the same length. */
  | {
    readonly kind: 'settle'
    readonly ids: number[]
    readonly tokens: (number | null)[]
    readonly picos: (bigint | null)[]
  }
  | { readonly kind: 'restore'; readonly rows: readonly SharedSpend[] }
  | { readonly kind: 'defaults'; readonly limits: Limits | null }

/** One that was admitted on a loan, and has from now on a number of its own. */
export interface OpenRequest extends Estimate {
  readonly id: number
  readonly runs: boolean
}

export interface SharedSpend {
  readonly ref: number
  readonly model: string | null
  readonly startedAt: number
  readonly pico: bigint
}

/** The answer to one `admit`. */
export interface AdmissionReply {
  readonly id: number
  /** null = admitted. */
  readonly refusal: Refusal | null
  readonly rateLimitStates: RateLimitStates
  /** For those that come next; the worker's loan of before, if it has one, is to be repaid. */
  readonly lease: GrantedLease | null
}

/** What a worker may admit without asking, at its number. */
export interface GrantedLease extends LeaseSize {
  readonly leaseId: number
  readonly lifetimeMs: number
}

/** What a worker is told. */
export interface LimiterReplies {
  readonly replies: readonly AdmissionReply[]
  /** Loans that are to be repaid at once: others need what nobody uses. */
  readonly called: readonly number[]
}
