import t from 'tap'
import { COLUMNS } from '../../../src/ledger/columns.ts'
import type { RowValues } from '../../../src/ledger/columns.ts'
import { SUM_COLUMNS } from '../../../src/ledger/sums/contributions.ts'
import { UnsummedRows } from '../../../src/ledger/sums/unsummed-rows.ts'

/** The values of a row in the order of its columns. */
function values(requestId: string, more: Readonly<Record<string, unknown>> = {}): RowValues {
  const all: Readonly<Record<string, unknown>> = { request_id: requestId, started_at: 1000, end: 'complete', source: 'reported', ...more }
  return COLUMNS.map(name => all[name] ?? null) as unknown as RowValues
}

const newest = (id: number, requestId: string, startedAt = 1000) => ({ id, requestId, startedAt })
const requestsOf = (rows: UnsummedRows, upTo: unknown, last: ReturnType<typeof newest>) => [...rows.take(upTo, last)?.hours() ?? []][0]?.figures[0] ?? null

t.test('consecutive rows are summed without reading them from the file', async t => {
  const rows = new UnsummedRows()
  rows.add([values('a'), values('b')], 12)
  rows.add([values('c')], 13)
  t.equal(requestsOf(rows, 10, newest(13, 'c')), 3)
  t.equal(requestsOf(rows, 10, newest(13, 'c')), null, 'once')
})

for (const [what, upTo, last] of [
  ['the sums lack an earlier row', 9, newest(12, 'b')], ['the sums include a row', 11, newest(12, 'b')], ['another process wrote the last row', 10, newest(13, 'x')],
  ['the last row id was reused', 10, newest(12, 'x')], ['the last row was replaced', 10, newest(12, 'b', 2000)],
] as const) {
  t.test(`rows must be read from the file: ${what}`, async t => {
    const rows = new UnsummedRows()
    rows.add([values('a'), values('b')], 12)
    t.equal(rows.take(upTo, last), null)
  })
}

t.test('after another process writes rows, only later rows are summed without reading the file', async t => {
  const rows = new UnsummedRows()
  rows.add([values('a')], 11)
  rows.add([values('b')], 13)
  t.equal(requestsOf(rows, 12, newest(13, 'b')), 1)
  const more = new UnsummedRows()
  more.add([values('a')], 11)
  more.add([], 20)
  t.equal(requestsOf(more, 10, newest(11, 'a')), 1, 'an empty batch changes nothing')
  t.equal(new UnsummedRows().take(0, newest(0, '')), null)
})

t.test('a cost is split into two numbers', async t => {
  const rows = new UnsummedRows()
  rows.add([values('a', { cost_pico_usd: 3_000_000_007n }), values('b')], 2)
  const figures = [...rows.take(0, newest(2, 'b'))?.hours() ?? []][0]?.figures ?? []
  const of = (name: (typeof SUM_COLUMNS)[number]) => figures[SUM_COLUMNS.indexOf(name)]
  t.strictSame([of('cost_high'), of('cost_low'), of('unpriced')], [3, 7, 1])
})

t.test('more sums than one transaction can write must be read from the file in batches', async t => {
  const rows = new UnsummedRows()
  rows.add(Array.from({ length: 2500 }, (_, n) => values(`r${n}`, { key: `k${n}` })), 2500)
  t.equal(rows.take(0, newest(2500, 'r2499'))?.size, 2500)
  rows.add(Array.from({ length: 2501 }, (_, n) => values(`r${n}`, { key: `k${n}` })), 2501)
  t.equal(rows.take(0, newest(2501, 'r2500')), null)
})
