import type { Limits } from '../config/types.ts'
import type { Figures, Refusal } from './types.ts'

/** What a worker asks of the limiter that all workers share, in the order in which it was asked. */
export type Request =
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
  }
  | { readonly kind: 'leave'; readonly id: number }
  | {
    readonly kind: 'settle'
    readonly id: number
    readonly tokens: number | null
    readonly pico: bigint | null
  }
  | { readonly kind: 'restore'; readonly rows: readonly SharedSpend[] }
  | { readonly kind: 'defaults'; readonly limits: Limits | null }

export interface SharedSpend {
  readonly ref: number
  readonly model: string | null
  readonly startedAt: number
  readonly pico: bigint
}

/** The answer to one `admit`. */
export interface Reply {
  readonly id: number
  /** null = admitted. */
  readonly refusal: Refusal | null
  readonly figures: Figures
}
