import { ERRORS, type ErrorCode } from '../../base/errors.ts'
import type { FoundRequest } from '../../ledger/read/ledger-reader.ts'
import { usageCounts, END_DESCRIPTIONS, SOURCE_DESCRIPTIONS } from '../../ledger/request-report.ts'
import { HEDGE_LOST, type AttemptRecord, type LedgerRow } from '../../ledger/row.ts'
import { explainCost } from '../../pricing/cost.ts'
import type { RequestDetailsList, RequestDetails } from '../api/logs.ts'
import { toRow } from './logs.ts'
import type { View } from './view.ts'

export function requestDetails(view: View, requestId: string, own: string | null): Pick<RequestDetailsList, 'stories'> {
  const found = view.reader.find(requestId).filter(({ row }) => own === null || row.key === own)
  return { stories: found.map(each => toRequestDetails(each, own)) }
}

function toRequestDetails({ row, running }: FoundRequest, own: string | null): RequestDetails {
  return {
    row: toRow(row, own), running, bytes_in: row.bytesIn, bytes_out: row.bytesOut,
    end_explanation: running ? 'the request is still running; all values are provisional' : END_DESCRIPTIONS[row.end],
    error_explanation: row.error === null ? null : errorText(row.error),
    source_explanation: SOURCE_DESCRIPTIONS[row.source],
    // Hidden from key holders, because the text of a route names upstreams.
    route: own === null ? row.route : null,
    trace_id: own === null ? row.traceId : null,
    attempts: row.attempts.map(attempt => toAttempt(attempt, own)),
    counts: usageCounts(row).flatMap(([label, value]) => (value === null ? [] : [{ label, value }])),
    // Hidden from key holders, because the version of a price can name the provider.
    price_version: own === null ? row.priceVersion : null,
    bill: own === null ? costLines(row) : [],
  }
}

function toAttempt(attempt: AttemptRecord, own: string | null): RequestDetails['attempts'][number] {
  return {
    upstream: own === null ? attempt.upstream : null,
    model: own === null ? attempt.model : null,
    translated: attempt.translated ?? null,
    dropped: [...attempt.dropped ?? []],
    outcome: attempt.outcome, explanation: outcomeText(attempt),
    at_ms: attempt.atMs ?? null, ms: attempt.ms, status: attempt.status ?? null,
    error_name: own === null ? attempt.said ?? null : null,
    error_text: own === null ? attempt.errorText ?? null : null,
    input_tokens: attempt.inputTokens ?? null, output_tokens: attempt.outputTokens ?? null,
    cost_usd: attempt.costUsd ?? null,
  }
}

function outcomeText({ outcome: code, said }: AttemptRecord): string {
  if (code === 'ok') return 'The upstream responded.'
  if (code === HEDGE_LOST) return 'Another target responded first, and this attempt was cancelled.'
  if (code === 'error_answer') return `The upstream responded with an error${said === undefined ? '' : `: ${said}`}.`
  return errorText(code) ?? 'The attempt failed.'
}

/** @returns null = the code is unknown, for example from an older version */
function errorText(code: string): string | null {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode].about : null
}

/** The lines of the bill. If several attempts produced the response, each attempt is billed at its own price. */
function costLines(row: LedgerRow): RequestDetails['bill'] {
  if (row.costPico === null || (row.costPico === 0n && row.billed === null)) return []
  const shares = row.attempts.flatMap(({ costUsd: cost, billed }, n) => (
    cost === undefined ? [] : [{ item: `attempt ${n + 1}${billed === undefined ? '' : ', which the client pays'}`, quantity: 1, price: cost, per: 1, cost_usd: cost }]))
  if (shares.length > 0) return shares
  return explainCost(row.usage, row.price).map(({ item, quantity, price, per, cost }) => ({ item, quantity, price, per, cost_usd: cost }))
}
