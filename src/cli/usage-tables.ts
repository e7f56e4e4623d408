import { formatUsd } from '../base/decimal.ts'
import { formatNumber, table } from '../base/text-table.ts'
import type { LedgerRow } from '../ledger/row.ts'
import type { GroupBy, UsageSum } from '../ledger/read/usage-sum.ts'

/** @param total sum of all requests of the query, including those that are not shown */
export function rowTable(rows: readonly LedgerRow[], total: UsageSum | undefined): string {
  const lines = table<LedgerRow>([
    { title: 'STARTED', text: row => new Date(row.startedAt).toISOString() },
    { title: 'REQUEST', text: row => row.requestId },
    { title: 'KEY', text: row => row.key ?? '-' },
    { title: 'MODEL', text: row => row.model ?? '-' },
    { title: 'UPSTREAM', text: row => row.upstream ?? '-' },
    { title: 'STATUS', text: row => String(row.status ?? '-'), right: true },
    { title: 'END', text: row => row.end },
    { title: 'MS', text: row => formatNumber(roundedMs(row.durationMs)), right: true },
    { title: 'INPUT', text: row => formatNumber(row.usage.inputTokens), right: true },
    { title: 'CACHED', text: row => formatNumber(row.usage.cachedInputTokens), right: true },
    { title: 'OUTPUT', text: row => formatNumber(row.usage.outputTokens), right: true },
    { title: 'USD', text: row => costText(row.costPico), right: true },
  ], rows)
  return lines + summary(total, rows.length)
}

/** @param total sum of all groups */
export function sumTable(by: readonly GroupBy[], sums: readonly UsageSum[], total: UsageSum | undefined): string {
  const lines = table<UsageSum>([
    ...by.map((name, n) => ({ title: name.toUpperCase(), text: (sum: UsageSum) => sum.groups[n] ?? '-' })),
    { title: 'REQUESTS', text: sum => formatNumber(sum.requests), right: true },
    { title: 'INPUT', text: sum => formatNumber(sum.inputTokens), right: true },
    { title: 'CACHED', text: sum => formatNumber(sum.cachedInputTokens), right: true },
    { title: 'CACHE WRITES', text: sum => formatNumber(sum.cacheWriteTokens), right: true },
    { title: 'OUTPUT', text: sum => formatNumber(sum.outputTokens), right: true },
    { title: 'REASONING', text: sum => formatNumber(sum.reasoningTokens), right: true },
    { title: 'USD', text: sum => costText(sum.costPico), right: true },
    { title: 'UNPRICED', text: sum => formatNumber(sum.unpriced), right: true },
  ], sums)
  return lines + summary(total, total?.requests ?? 0)
}

/** The line below a table: the total, and how much of the total the table shows. */
function summary(total: UsageSum | undefined, shown: number): string {
  if (total === undefined) return '\nNo requests.\n'
  const requests = total.requests === 1 ? '1 request' : `${formatNumber(total.requests)} requests`
  const last = shown === 1 ? 'one is' : `${formatNumber(shown)} are`
  const only = shown < total.requests ? ` (the last ${last} shown)` : ''
  const unpriced = total.unpriced === 0 ? '' : `, ${formatNumber(total.unpriced)} of them without a price`
  const cost = total.costPico === null ? 'cost unknown' : `${formatUsd(total.costPico)} USD`
  return `\n${requests}${only}${unpriced}: ${formatNumber(total.inputTokens)} tokens in, ` +
    `${formatNumber(total.outputTokens)} out, ${cost}\n`
}

function roundedMs(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}

function costText(pico: bigint | null): string {
  return pico === null ? 'unknown' : formatUsd(pico)
}
