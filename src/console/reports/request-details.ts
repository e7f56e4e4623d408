import type { Stories, Story } from '../api/logs.ts'
import { ERRORS } from '../../base/errors.ts'
import type { ErrorCode } from '../../base/errors.ts'
import type { Found } from '../../ledger/query.ts'
import type { AttemptRecord, LedgerRow } from '../../ledger/row.ts'
import { counts, ENDS, SOURCES } from '../../ledger/request-report.ts'
import { explainCost } from '../../pricing/cost.ts'
import { rowTold } from './logs.ts'
import type { View } from './view.ts'

export function stories(view: View, requestId: string, own: string | null): Pick<Stories, 'stories'> {
  const found = view.reader.find(requestId).filter(({ row }) => own === null || row.key === own)
  return { stories: found.map(each => told(each, own)) }
}

function told({ row, running }: Found, own: string | null): Story {
  return {
    row: rowTold(row, own),
    running,
    bytes_in: row.bytesIn,
    bytes_out: row.bytesOut,
    end_explanation: running ? 'it is still running: all of this is provisional' : ENDS[row.end],
    error_explanation: row.error === null ? null : about(row.error),
    source_explanation: SOURCES[row.source],
    // It names upstreams.
    route: own === null ? row.route : null,
    attempts: row.attempts.map(attempt => attemptTold(attempt, own)),
    counts: counts(row).flatMap(([label, value]) => (value === null ? [] : [{ label, value }])),
    price_version: row.priceVersion,
    bill: bill(row),
  }
}

function attemptTold(attempt: AttemptRecord, own: string | null): Story['attempts'][number] {
  return {
    upstream: own === null ? attempt.upstream : null,
    model: own === null ? attempt.model : null,
    outcome: attempt.outcome,
    explanation: outcome(attempt),
    at_ms: attempt.atMs ?? null,
    ms: attempt.ms,
    status: attempt.status ?? null,
    input_tokens: attempt.inputTokens ?? null,
    output_tokens: attempt.outputTokens ?? null,
    cost_usd: attempt.costUsd ?? null,
  }
}

function outcome({ outcome: code, said }: AttemptRecord): string {
  if (code === 'ok') return 'It answered.'
  if (code === 'error_answer') {
    return `It answered with an error of its own${said === undefined ? '' : `: ${said}`}.`
  }
  return about(code) ?? 'It failed.'
}

/** @returns null for a code that an older version may have written */
function about(code: string): string | null {
  return Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode].about : null
}

/** An answer that several upstreams made up is billed by each at its own price. */
function bill(row: LedgerRow): Story['bill'] {
  if (row.costPico === null || row.costPico === 0n) return []
  const shares = row.attempts.flatMap(({ costUsd: cost }, n) => (
    cost === undefined
      ? []
      : [{ item: `attempt ${n + 1}`, quantity: 1, price: cost, per: 1, cost_usd: cost }]))
  if (shares.length > 0) return shares
  return explainCost(row.usage, row.price).map(({ item, quantity, price, per, cost }) => ({
    item, quantity, price, per, cost_usd: cost,
  }))
}
