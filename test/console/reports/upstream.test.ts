import t from 'tap'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { row } from '../../ledger/rows.ts'
import { DAY, filled, HOUR, iso, NOW, withReports } from './filled.ts'

const ROUTE = 'routes[0], line 4: model * -> [alpha, beta] (ordered)'
const attempt = (upstream: string, outcome = 'ok', status?: number) => ({ upstream, model: 'm', outcome, ms: 1, ...status && { status } })

function rows(): LedgerRow[] {
  const at = (n: number, changes: Partial<LedgerRow>) => row(`r${n}`, {
    startedAt: NOW - n * HOUR, upstream: 'alpha', attempts: [attempt('alpha')], route: ROUTE, ...changes,
  })
  return [
    at(1, { firstByteMs: 100, durationMs: 1000 }),
    at(2, { end: 'client_gone', firstByteMs: 200, durationMs: 2000 }),
    at(3, { end: 'error', status: 503, attempts: [{ ...attempt('alpha', 'error_answer', 503), said: 'overloaded' }] }),
    at(4, { end: 'error', status: 429, attempts: [attempt('alpha', 'error_answer', 429)] }),
    at(5, { end: 'error', status: 400, attempts: [attempt('alpha', 'error_answer', 400)] }),
    at(6, { end: 'timeout', error: 'idle_timeout', attempts: [attempt('alpha', 'idle_timeout')] }),
    at(7, { end: 'timeout', error: 'client_stalled' }),
    at(8, { end: 'refused', error: 'rate_limited', upstream: null, attempts: [] }),
    at(9, { end: 'refused', error: 'rate_limited', upstream: null, attempts: [], route: ROUTE.replace('alpha', 'alpha-2') }),
    at(10, { upstream: 'beta', attempts: [attempt('alpha', 'connect_timeout'), attempt('beta')] }),
    at(11, { attempts: [attempt('beta', 'upstream_cut'), attempt('alpha')] }),
    at(12, { upstream: 'beta', attempts: [attempt('beta')] }),
    at(30, {}),
  ]
}

t.test('the report of an upstream shows outcomes, durations and failovers', async t => {
  await withReports(filled(t.testdir(), rows()), async reports => {
    const report = await reports.upstreamReport('alpha', {})
    t.match(report, {
      from: iso(NOW - DAY), to: iso(NOW), complete: true, slice_ms: 900_000,
      outcomes: { requests: 9, complete: 2, client_disconnected: 1, provider_failures: 3, client_errors: 2, gateway_refusals: 1 },
      failovers_to: [{ upstream: 'beta', count: 1 }],
      failovers_from: [{ upstream: 'beta', count: 1 }],
    })
    t.strictSame(report.attempts, [
      { outcome: 'ok', count: 4 }, { outcome: 'connect_timeout', count: 1 }, { outcome: 'idle_timeout', count: 1 },
      { outcome: 'status 400', count: 1 }, { outcome: 'status 429', count: 1 }, { outcome: 'status 503 overloaded', count: 1 },
    ].toSorted((a, b) => b.count - a.count || report.attempts.findIndex(({ outcome }) => outcome === a.outcome)
      - report.attempts.findIndex(({ outcome }) => outcome === b.outcome)))
    t.ok(Math.abs((report.duration.p99_ms ?? 0) - 2000) < 110)
    t.equal(report.slices.length, 97)
    t.strictSame(report.slices.filter(({ outcomes }) => outcomes.requests > 0).length, 9)
    const slowest = report.slices.find(({ outcomes }) => outcomes.client_disconnected > 0)
    t.equal(slowest?.at, iso(Math.floor((NOW - 2 * HOUR) / 900_000) * 900_000))
    t.ok(Math.abs((slowest?.first_byte.p50_ms ?? 0) - 200) < 11)
    const hour = await reports.upstreamReport('alpha', { from: iso(NOW - HOUR), to: iso(NOW) })
    t.match(hour, { slice_ms: 60_000, outcomes: { requests: 1, complete: 1 } })
    t.match(await reports.upstreamReport('100%_"', {}), { outcomes: { requests: 0 }, attempts: [], failovers_to: [] })
  })
})
