import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { HOURS_KEPT } from '../../../src/ledger/sums/rollups.ts'
import { row } from '../../ledger/rows.ts'
import { DAY, filled, HOUR, iso, NOW, withReports } from './filled.ts'

const MIDNIGHT = NOW - (NOW % DAY)

t.test('each slice of the panel has the requests that started in the hour or UTC day of the slice', async t => {
  const began = [MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + HOUR - 1, MIDNIGHT + HOUR, MIDNIGHT + DAY / 2, NOW - 1]
  const file = filled(t.testdir(), began.map((startedAt, n) => row(`r${n}`, {
    startedAt, costPico: 10n ** BigInt(n) * 10n ** 12n, end: n % 2 === 0 ? 'error' : 'complete',
  })), 4)
  await withReports(file, async reports => {
    const filledSlices = async (from: number, to: number) => {
      const { slice, slices } = await reports.panel({ from: iso(from), to: iso(to) }, null)
      const busy = slices.filter(({ requests }) => requests > 0)
      return [slice, ...busy.map(({ at, requests, errors, tokens, cost_usd }) =>
        [at.slice(0, 13), requests, errors, tokens, cost_usd])]
    }
    t.strictSame(await filledSlices(MIDNIGHT - HOUR, NOW - 1), ['hour',
      ['2026-11-20T23', 1, 1, 1500, '1'],
      ['2026-11-21T00', 2, 1, 3000, '110'],
      ['2026-11-21T01', 1, 0, 1500, '1000'],
      ['2026-11-21T12', 1, 1, 1500, '10000'],
    ], 'a request that starts at the end of the period is not included')
    t.equal((await filledSlices(NOW - 3 * DAY, NOW))[0], 'hour')
    t.strictSame(await filledSlices(NOW - 3 * DAY - 1, NOW), ['day',
      ['2026-11-20T00', 1, 1, 1500, '1'],
      ['2026-11-21T00', 5, 2, 7500, '111110'],
    ])
  })
})

t.test('the slice can be set to a minute, an hour or a day; a period with too many slices is refused', async t => {
  const minute = NOW - (NOW % 60_000)
  const began = [minute - 61_000, minute - 1, minute, minute + 1000, NOW - 3 * HOUR]
  const file = filled(t.testdir(), began.map((startedAt, n) => row(`r${n}`, { startedAt, costPico: 10n ** 12n })), 3)
  await withReports(file, async reports => {
    const { slice, slices, now } = await reports.panel({ from: iso(NOW - 2 * HOUR), to: iso(NOW), slice: 'minute' }, null)
    t.equal(slice, 'minute')
    t.equal(slices.length, 121)
    t.strictSame(slices.filter(({ requests }) => requests > 0).map(({ at, requests, cost_usd }) => [at, requests, cost_usd]), [
      [iso(minute - 120_000), 1, '1'], [iso(minute - 60_000), 1, '1'], [iso(minute), 2, '2'],
    ])
    t.match(now.figures, { requests: 4, cost_usd: '4' })
    t.equal((await reports.panel({ from: iso(NOW - 30 * DAY), slice: 'hour' }, null)).slice, 'hour')
    t.equal((await reports.panel({ from: iso(NOW - DAY), slice: 'day' }, null)).slice, 'day')
    for (const [from, wanted] of [[NOW - DAY - 1, 'minute'], [NOW - 32 * DAY, 'hour']] as const) {
      await t.rejects(reports.panel({ from: iso(from), slice: wanted }, null), { code: 'bad_request', field: 'slice' })
    }
  })
})

t.test('times to the first byte are computed for the period, for each upstream or for the own key', async t => {
  const file = filled(t.testdir(), [
    row('a', { startedAt: MIDNIGHT - DAY, firstByteMs: 10, key: 'mine', upstream: 'fast' }),
    row('b', { startedAt: MIDNIGHT - DAY, firstByteMs: 2000, key: 'theirs', upstream: 'slow' }),
    row('c', { startedAt: MIDNIGHT - DAY, firstByteMs: 2000, key: null, upstream: null }),
    row('d', { startedAt: MIDNIGHT - DAY, firstByteMs: null, key: 'mine', upstream: 'slow' }),
    row('e', { startedAt: NOW - 1, firstByteMs: 300, key: 'mine', upstream: 'fast' }),
    row('f', { startedAt: NOW - 1, firstByteMs: null, key: 'mine', upstream: 'fast' }),
  ], 5)
  // Percentiles are exact to 5 %.
  const round = (ms: number | null) => ms && Number(ms.toPrecision(1))
  const day = { from: iso(MIDNIGHT - DAY), to: iso(MIDNIGHT) }
  const today = { from: iso(NOW - 1000), to: iso(NOW) }
  await withReports(file, async reports => {
    const told = async (range: typeof day, own: string | null) => {
      const { now: { first_byte: { p50_ms: p50, p95_ms: p95 } } } = await reports.panel(range, own)
      return [round(p50), round(p95)]
    }
    t.strictSame(await told(day, null), [2000, 2000])
    t.strictSame(await told(day, 'mine'), [10, 10])
    t.strictSame(await told(today, null), [300, 300])
    t.strictSame(await told(today, 'theirs'), [null, null])
    const upstreams = await reports.upstreamFigures({ from: day.from, to: today.to })
    t.strictSame(upstreams.map(({ name, share, first_byte: { p50_ms: p50, p95_ms: p95 } }) =>
      [name, share, round(p50), round(p95)]), [['fast', 3 / 5, 10, 300], ['slow', 2 / 5, 2000, 2000]])
  })
})

t.test('the panel extends a period without sums by hour to whole days', async t => {
  const file = filled(t.testdir(), [])
  const old = MIDNIGHT - HOURS_KEPT * HOUR - DAY
  const store = new LedgerStore(file, 'one')
  const rows = [1, 5, 9].map(hour => row(`r${hour}`, { startedAt: old + hour * HOUR, firstByteMs: 100 }))
  store.write({ seq: 1, drafts: [], closed: [...rows, row('later', { startedAt: old + DAY })].map(encode) })
  while (store.sum());
  while (store.expire(old + DAY, NOW));
  store.close()
  await withReports(file, async reports => {
    const range = { from: iso(old + 4 * HOUR), to: iso(old + 6 * HOUR) }
    const { now } = await reports.panel(range, null)
    t.match(now, { from: iso(old), to: iso(old + DAY), figures: { requests: 3, cost_usd: '0.00198' } })
    t.ok(Math.abs((now.first_byte.p50_ms ?? 0) - 100) < 10, 'percentiles are exact to about 5 %')
  })
})

t.test('a period of up to three hours has slices of a minute, or of an hour if rows are deleted', async t => {
  const at = NOW - (NOW % HOUR) - HOUR
  const file = filled(t.testdir(), [row('1', { startedAt: at }), row('2', { startedAt: at + HOUR - 1 })])
  const sliceOf = (from: number) => withReports(file, async reports =>
    (await reports.panel({ from: iso(from), to: iso(at + HOUR) }, null)).slice)
  t.equal(await sliceOf(at), 'minute')
  t.equal(await sliceOf(at - 2 * HOUR), 'minute')
  t.equal(await sliceOf(at - 2 * HOUR - 1), 'hour')
  const db = new DatabaseSync(file)
  db.exec(`DELETE FROM requests WHERE request_id = '1'`)
  db.close()
  t.equal(await sliceOf(at), 'hour')
})
