import t from 'tap'
import { DAY, HOUR, MINUTE, alignedPeriod, canReadRows, ceil, detailedSegmentsOf, floor, hasEachRow, periodName, periodOf, segmentCondition, segmentsOf, wholeDays } from '../../../src/console/reports/period.ts'
import { firstHourKept } from '../../../src/ledger/sums/rollups.ts'
import type { Sql, View } from '../../../src/console/reports/view.ts'

const NOON = Date.parse('2026-11-21T12:00:00Z')
const MIDNIGHT = NOON - 12 * HOUR
const at = (text: string) => Date.parse(text)

for (const [query, from, to] of [
  [{}, NOON - DAY, NOON], [{ from: '2026-11-20T00:00:00Z' }, at('2026-11-20'), NOON], [{ to: '2026-11-20T00:00:00Z' }, at('2026-11-19'), at('2026-11-20')], [{ from: '2026-11-01', to: '2026-11-02' }, at('2026-11-01'), at('2026-11-02')],
  [{ from: '2026-11-22' }, at('2026-11-22'), at('2026-11-22') + 1],
] as const) {
  t.test(`the period of ${JSON.stringify(query)} is read`, async t => t.strictSame(periodOf(query, NOON), { from, to }))
}

for (const [query, field] of [
  [{ from: 'soon' }, 'from'], [{ to: '' }, 'to'], [{ from: '2026-11-02', to: '2026-11-02' }, 'to'], [{ from: '2026-11-03', to: '2026-11-02' }, 'to'], [{ from: '2010-01-01', to: '2026-01-01' }, 'from'],
] as const) {
  t.test(`the period of ${JSON.stringify(query)} is refused`, async t => t.throws(() => periodOf(query, NOON), { code: 'bad_request', field }))
}

for (const [from, to, expected] of [
  ['2026-11-01', '2026-12-01', '2026-11'], ['2026-11-01', '2026-11-22', '2026-11'], ['2026-11-01', '2026-11-21', '2026-11-01--2026-11-20'], ['2026-11-03', '2026-11-04', '2026-11-03'], ['2026-11-03', '2026-11-10', '2026-11-03--2026-11-09'],
  ['2026-10-01', '2026-12-01', '2026-10-01--2026-11-30'], ['2026-10-01', '2026-10-02', '2026-10-01'], ['2026-11-02', '2026-12-01', '2026-11-02--2026-11-30'],
] as const) {
  t.test(`the period from ${from} to ${to} is named ${expected}`, async t => t.equal(periodName({ from: at(from), to: at(to) }, NOON), expected))
}

t.test('times are rounded to hours, and periods to whole days', async t => {
  t.strictSame([floor(NOON + 1, HOUR), ceil(NOON + 1, HOUR), ceil(NOON, HOUR)], [NOON, NOON + HOUR, NOON])
  t.strictSame(wholeDays({ from: NOON, to: NOON + 1 }), { from: MIDNIGHT, to: MIDNIGHT + DAY })
  t.strictSame(wholeDays({ from: MIDNIGHT, to: MIDNIGHT + DAY }), { from: MIDNIGHT, to: MIDNIGHT + DAY })
})

/** A View of a ledger. @param requests and `rows` by hour: all requests and rows that are not deleted; `unsummed` rows are in no sum */
function viewOf(
  { requests = new Map<number, number>(), rows = requests, unsummed = 0, detailedFrom = 0 }: {
    readonly requests?: ReadonlyMap<number, number>, readonly rows?: ReadonlyMap<number, number>, readonly unsummed?: number, readonly detailedFrom?: number,
  } = {},
): View {
  const within = (counts: ReadonlyMap<number, number>, from: number, to: number) => [...counts].filter(([hour]) => hour >= from && hour < to).reduce((sum, [, count]) => sum + count, 0)
  const all = ({ sql, values }: Sql) => {
    const [from = 0, to] = values.map(Number)
    return [sql.includes('count(*)') ? { rows: within(rows, from / HOUR, Number(to) / HOUR) } : { requests: (to === undefined ? requests.get(from) : within(requests, from, to)) || null }]
  }
  return { now: NOON + 5 * MINUTE, summedTo: 70, unsummed, detailedFrom, all } as unknown as View
}

const hourOf = (ms: number) => ms / HOUR
const tablesOf = (pieces: ReturnType<typeof segmentsOf>) => pieces.map(({ table, from, to, after }) => [table, (from - MIDNIGHT) / HOUR, (to - MIDNIGHT) / HOUR, ...after === undefined ? [] : [after]])

for (const [what, from, to, expected] of [
  ['whole days', -48, 0, [['days', -48, 0]]], ['hours', 1, 3, [['hours', 1, 3]]], ['hours beside days', -25, 2, [['hours', -25, -24], ['days', -24, 0], ['hours', 0, 2]]], ['rows at the bounds', 0.5, 2.5, [['requests', 0.5, 1], ['hours', 1, 2], ['requests', 2, 2.5]]],
  ['a part of an hour', 1.25, 1.5, [['requests', 1.25, 1.5]]], ['the time up to now', 11, 13, [['hours', 11, 13]]], ['the last minutes', 12, 12.5, [['hours', 12, 13]]], ['a day and a half', -24, 12, [['days', -24, 0], ['hours', 0, 12]]],
] as const) {
  t.test(`a period is read from sums, and from rows where no sum fits: ${what}`, async t => t.strictSame(tablesOf(segmentsOf(viewOf(), { from: MIDNIGHT + from * HOUR, to: MIDNIGHT + to * HOUR })), expected))
}

t.test('rows that are in no sum yet are read in addition to the sums', async t => {
  t.strictSame(tablesOf(segmentsOf(viewOf({ unsummed: 3 }), { from: MIDNIGHT + HOUR / 2, to: MIDNIGHT + 2 * HOUR })), [['requests', 0.5, 1], ['hours', 1, 2], ['requests', 1, 2, 70]])
  t.strictSame(tablesOf(segmentsOf(viewOf({ unsummed: 3 }), { from: MIDNIGHT + 1, to: MIDNIGHT + 2 })).length, 1)
  t.strictSame(segmentCondition({ table: 'requests', from: 1, to: 2 }), { sql: 'started_at >= ? AND started_at < ?', values: [1, 2] })
  t.strictSame(segmentCondition({ table: 'requests', from: 1, to: 2, after: 3 }).values, [3, 1, 2])
})

t.test('a report is refused with not_yet while more than 200,000 rows are in no sum', async t => {
  const period = { from: MIDNIGHT, to: NOON }
  t.doesNotThrow(() => segmentsOf(viewOf({ unsummed: 200_000 }), period))
  t.throws(() => segmentsOf(viewOf({ unsummed: 200_001 }), period), { code: 'not_yet' })
})

t.test('sums by group and status are read for the days that have such sums, and rows for the other days', async t => {
  const period = { from: MIDNIGHT - 36 * HOUR, to: MIDNIGHT + HOUR }
  t.strictSame(tablesOf(detailedSegmentsOf(viewOf(), period)), [['requests', -36, -24], ['detailed_days', -24, 0], ['requests', 0, 1]])
  t.strictSame(tablesOf(detailedSegmentsOf(viewOf({ detailedFrom: MIDNIGHT / DAY }), period)), [['requests', -36, 1]])
  t.strictSame(tablesOf(detailedSegmentsOf(viewOf({ unsummed: 5 }), { from: MIDNIGHT - DAY, to: MIDNIGHT })), [['detailed_days', -24, 0], ['requests', -24, 0, 70]])
  t.strictSame(tablesOf(detailedSegmentsOf(viewOf({ unsummed: 200_001 }), period)), [['requests', -36, 1]])
})

t.test('a bound of a period moves to the full hour or day if the rows of its hour cannot be read', async t => {
  const hour = hourOf(MIDNIGHT)
  const half = { from: MIDNIGHT + HOUR / 2, to: MIDNIGHT + 1.5 * HOUR }
  t.strictSame(alignedPeriod(viewOf({ requests: new Map([[hour, 5], [hour + 1, 200_000]]) }), half), half)
  t.strictSame(alignedPeriod(viewOf(), half), half, 'an hour without requests has all its rows')
  t.strictSame(alignedPeriod(viewOf({ requests: new Map([[hour, 5]]), rows: new Map([[hour, 4]]) }), half), { from: MIDNIGHT, to: half.to })
  t.strictSame(alignedPeriod(viewOf({ requests: new Map([[hour + 1, 200_001]]) }), half), { from: half.from, to: MIDNIGHT + 2 * HOUR })
  const long = MIDNIGHT - 3650 * DAY
  t.strictSame(alignedPeriod(viewOf(), { from: long + HOUR, to: long + DAY + HOUR }), { from: long, to: long + 2 * DAY }, 'after the sums by hour are deleted, the bounds move to whole days')
  const first = firstHourKept(NOON + 5 * MINUTE) * HOUR
  t.strictSame(alignedPeriod(viewOf(), { from: first, to: first + HOUR }), { from: first, to: first + HOUR })
  t.strictSame(alignedPeriod(viewOf(), { from: NOON, to: NOON + 7 * MINUTE }).to, NOON + 7 * MINUTE, 'a bound after the current time is not moved')
})

t.test('a period is read row by row only if it has at most 200,000 rows and no row is deleted', async t => {
  const hour = hourOf(MIDNIGHT)
  const period = { from: MIDNIGHT, to: MIDNIGHT + 2 * HOUR }
  t.equal(hasEachRow(viewOf({ requests: new Map([[hour, 5], [hour + 1, 6]]) }), period), true)
  t.equal(hasEachRow(viewOf({ requests: new Map([[hour, 5], [hour + 1, 6]]), rows: new Map([[hour, 5], [hour + 1, 5]]) }), period), false)
  t.equal(hasEachRow(viewOf({ requests: new Map([[hour + 2, 6]]), rows: new Map() }), period), true, 'deleted rows after the period do not matter')
  t.equal(canReadRows(viewOf({ requests: new Map([[hour, 100_000], [hour + 1, 100_000]]) }), period), true)
  t.equal(canReadRows(viewOf({ requests: new Map([[hour, 100_000], [hour + 1, 100_001]]) }), period), false)
  t.equal(canReadRows(viewOf(), { from: MIDNIGHT - 3650 * DAY, to: NOON }), false)
})
