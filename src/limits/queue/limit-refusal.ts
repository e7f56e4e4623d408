import type { QueueLimits } from '../../config/key-types.ts'

export interface LimitRefusal {
  readonly which: LimitReason
  /** Where the refusing limit is configured. `model`: null = the limits of the whole key or group; otherwise a glob in `limits.models`. */
  readonly scope: { readonly key: string; readonly group: string | null; readonly model: string | null }
  /** Milliseconds until the request fits if no other request comes; a guess if running requests block it. null = waiting cannot help. */
  readonly retryAfterMs: number | null
  /** true = a client should wait and retry instead of reporting the error. */
  readonly renewsSoon: boolean
  /** English text for the client. The text can name limits and groups, but no keys. */
  readonly message: string
  /** The queue of the refusing limit; null or absent = it has none. */
  readonly queue?: QueueLimits | null
}

/** `unpriced`: the key has a budget, and the price of the model is unknown. `unavailable`: shared limits cannot be checked. */
export type LimitReason = 'requests' | 'tokens' | 'concurrent' | 'budget' | 'unpriced' | 'unavailable'
