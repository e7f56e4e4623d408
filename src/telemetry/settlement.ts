import type { GatewayError } from '../base/errors.ts'
import type { LedgerRow } from '../ledger/row.ts'
import type { LimitReason } from '../limits/types.ts'
import type { GenAiCall } from '../protocols/endpoint/gen-ai.ts'

/** A request that has ended. Metrics and traces report only what is in it; the ledger already has its row. */
export interface Settlement {
  readonly row: LedgerRow
  /** Why it is incomplete; null = it is complete. */
  readonly failure: GatewayError | null
  /** The limit that refused it; null = none did. */
  readonly refusedBy: LimitReason | null
  /** Attempts, by their place in the row, whose response the next one continued. */
  readonly continued: readonly boolean[]
  /** The call of a model; null = no upstream responded, or it called none. */
  readonly call: (GenAiCall & { readonly serverAddress: string | null }) | null
  readonly isStream: boolean
  /** Milliseconds that the gateway itself added before the first byte; null = no upstream's byte came. */
  readonly overheadMs: number | null
}

/** The settlement of a request whose process was killed, from its row in the ledger. */
export function interruptedSettlement(row: LedgerRow): Settlement {
  return {
    row, failure: null, refusedBy: null, continued: [], call: null, isStream: false, overheadMs: null,
  }
}

/** `error.type`: the code of the gateway's error, or the status of the upstream's error; null = no error. */
export function errorTypeOf({ row: { error, status, end } }: Settlement): string | null {
  if (error !== null) return error
  return end === 'error' && status !== null ? String(status) : null
}
