import type { GatewayError } from '../base/errors.ts'
import type { LedgerRow } from '../ledger/row.ts'
import type { LimitReason } from '../limits/types.ts'
import type { GenAiCall } from '../protocols/endpoint/gen-ai.ts'

/** A request that has ended and is in the ledger. Metrics and traces report only such requests. */
export interface Settlement {
  readonly row: LedgerRow
  /** The error that ended the request; null = the request is complete. */
  readonly failure: GatewayError | null
  /** The limit that refused the request; null = none. */
  readonly refusedBy: LimitReason | null
  /** For each attempt in the row, by index: true if the next attempt continued its response. */
  readonly continued: readonly boolean[]
  /** The model call; null = no upstream responded, or the request calls no model. */
  readonly call: (GenAiCall & { readonly serverAddress: string | null }) | null
  readonly isStream: boolean
  /** ms that the gateway added before the first byte; null = no upstream sent a byte. */
  readonly overheadMs: number | null
  /** Waits in queues, by whose limit had no room; absent = none. */
  readonly queueWaits?: readonly { readonly scope: string, readonly ms: number, readonly isRefused: boolean }[]
}

/** @param row row of a request whose process was killed */
export function interruptedSettlement(row: LedgerRow): Settlement {
  return { row, failure: null, refusedBy: null, continued: [], call: null, isStream: false, overheadMs: null }
}

/** The value of `error.type`: the code of the gateway's error, or the status of the upstream's error; null = no error. */
export function errorTypeOf({ row: { error, status, end } }: Settlement): string | null {
  if (error !== null) return error
  return end === 'error' && status !== null ? String(status) : null
}
