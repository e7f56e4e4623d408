import { formatUsd } from '../../../src/base/decimal.ts'
import type { Figures } from '../../../src/console/api/shapes.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'

/** Computes the figures of the API from single rows. */
export function figuresOf(rows: readonly LedgerRow[]): Figures {
  const sum = (value: (one: LedgerRow) => number | null) => rows.reduce(
    (all, one) => all + (value(one) ?? 0), 0,
  )
  const cost = (some: readonly LedgerRow[]) => formatUsd(
    some.reduce((all, { costPico }) => all + (costPico ?? 0n), 0n),
  )
  const estimated = rows.filter(({ source }) => source === 'estimated' || source === 'mixed')
  const unpriced = rows.filter(({ costPico }) => costPico === null).length
  return {
    requests: rows.length,
    errors: rows.filter(({ end }) => end !== 'complete' && end !== 'client_gone').length,
    input_tokens: sum(({ usage }) => usage.inputTokens),
    cached_input_tokens: sum(({ usage }) => usage.cachedInputTokens),
    cache_write_tokens: sum(({ usage }) => (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)),
    output_tokens: sum(({ usage }) => usage.outputTokens),
    reasoning_tokens: sum(({ usage }) => usage.reasoningTokens),
    cost_usd: cost(rows) === '0' && unpriced > 0 ? null : cost(rows),
    estimated_requests: estimated.length,
    estimated_cost_usd: cost(estimated),
    unpriced_requests: unpriced,
  }
}
