import { deepStrictEqual } from 'node:assert'
import { rmSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import type { QueryOf } from '../../../src/console/api/api.ts'
import { logs } from '../../../src/console/reports/logs.ts'
import { openView } from '../../../src/console/reports/view.ts'
import { encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import type { EndReason, LedgerRow } from '../../../src/ledger/row.ts'
import { maybe } from '../../support/maybe.ts'
import { row } from '../../ledger/rows.ts'
import { DAY, filled, HOUR, iso, NOW, withReports } from './filled.ts'

type Conditions = QueryOf<'GET /logs.csv'>

function fits(one: LedgerRow, { from, to, key, model, upstream, without, status, end }: Conditions): boolean {
  if (one.startedAt < Date.parse(from ?? '') || (to !== undefined && one.startedAt >= Date.parse(to))) {
    return false
  }
  if (key !== undefined && one.key !== key) return false
  if (model !== undefined && one.model !== model) return false
  if (upstream !== undefined && one.upstream !== upstream) return false
  for (const none of ['key', 'model', 'upstream'] as const) {
    if (without?.split(',').includes(none) === true && one[none] !== null) return false
  }
  if (status === 'none' && one.status !== null) return false
  if (status?.endsWith('xx') === true && String(one.status)[0] !== status[0]) return false
  if (status !== undefined && /^\d+$/.test(status) && one.status !== Number(status)) return false
  if (end === 'failed') return one.end !== 'complete' && one.end !== 'client_gone'
  return end === undefined || one.end === end
}

const ends: EndReason[] = ['complete', 'client_gone', 'error', 'timeout', 'interrupted']
const name = fc.constantFrom('a', 'b', '')
/** Times within a few days: many in the same hour, some in the same millisecond. */
const moment = fc.nat(40).map(n => NOW - Math.floor(n / 3) * 5 * HOUR - (n % 3) * 1000)
const rows = fc.array(fc.record({
  startedAt: moment,
  key: maybe(name),
  model: maybe(name),
  upstream: maybe(name),
  status: fc.constantFrom(200, 200, 200, 201, 404, 429, 500, 503, null),
  end: fc.constantFrom('complete', ...ends),
}).map(changes => row('', changes)), { maxLength: 80 })
  .map(all => all.map((one, n) => ({ ...one, requestId: `r${n}` })))

const conditions: fc.Arbitrary<Conditions> = fc.record({
  from: moment.map(iso),
  key: name,
  model: name,
  upstream: name,
  without: fc.subarray(['key', 'model', 'upstream'], { minLength: 1 }).map(names => names.join(',')),
  status: fc.constantFrom('200', '2xx', '404', '4xx', '503', '5xx', 'none', '1xx'),
  end: fc.constantFrom('failed' as const, ...ends as never[]),
}, { requiredKeys: ['from'] }).map(({ without, ...some }) => {
  // A filter for a name excludes a filter for requests without that name.
  const none = without?.split(',').filter(each => some[each as 'key'] === undefined).join(',')
  return none ? { ...some, without: none } : some
}).chain(some => fc.option(moment, { nil: null }).map(to =>
  (to === null || iso(to) <= some.from ? some : { ...some, to: iso(to) }) as Conditions))

t.test('property: the pages of each filter have the matching requests, newest first', async t => {
  const directory = t.testdir()
  const property = fc.property(rows, fc.nat(80), conditions, fc.integer({ min: 1, max: 7 }), (
    all, summed, query, limit,
  ) => {
    const file = filled(directory, all, summed)
    const open = openView(file)
    const found: string[] = []
    let before: string | null = null
    do {
      const page = open.read(NOW, view =>
        logs(view, { ...query, limit, ...before !== null && { before } }, null))
      found.push(...page.rows.map(one => one.request_id))
      before = page.next
    } while (before !== null)
    open.close()
    rmSync(file)
    // Of requests of the same millisecond, the request that was written last comes first.
    const due = all.filter(one => fits(one, query)).toReversed().sort((a, b) => b.startedAt - a.startedAt)
    deepStrictEqual(found, due.map(one => one.requestId))
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 150 }))
})

t.test('a page has at most `limit` requests, even if many requests started in one millisecond', async t => {
  const of = (at: number, n: number) => row(`${at} ${n}`, { startedAt: at, status: 500, end: 'error' })
  const all = [NOW - 30 * HOUR, NOW - 2 * HOUR, NOW - HOUR, NOW]
    .flatMap(at => [0, 1, 2, 3, 4].map(n => of(at, n)))
  const open = openView(filled(t.testdir(), all, 17))
  t.teardown(() => open.close())
  const range = { from: iso(NOW - 2 * DAY) }
  const wanted = all.map(({ requestId }) => requestId).toReversed()
  const conditions: Conditions[] = [
    {}, { key: 'team-a' }, { status: '5xx' },
    { status: '500', model: 'gpt-4.1-mini' }, { upstream: 'openai', end: 'failed' },
  ]
  for (const query of conditions) {
    const pages: string[][] = []
    let before: string | null = null
    do {
      const page = open.read(NOW, view =>
        logs(view, { ...range, ...query, limit: 3, ...before !== null && { before } }, null))
      pages.push(page.rows.map(one => one.request_id))
      before = page.next
    } while (before !== null)
    const told = JSON.stringify(query)
    t.strictSame(pages.flat(), wanted, told)
    t.strictSame(pages.map(({ length }) => length), [3, 3, 3, 3, 3, 3, 2], told)
  }
})

t.test('a client that follows the log gets each request after the request ends, in whatever order the requests started', async t => {
  const file = filled(t.testdir(), [row('old', { startedAt: NOW - 1000 })])
  const store = new LedgerStore(file, 'more')
  await withReports(file, async reports => {
    const first = await reports.logs({}, null)
    t.strictSame(first.rows.map(one => one.request_id), ['old'])
    let after = first.last ?? ''
    const look = async (limit = 200) => {
      const { rows, last } = await reports.logs({ after, limit }, null)
      after = last ?? after
      return rows.map(one => one.request_id)
    }
    t.strictSame(await look(), [])
    const long = row('long', { startedAt: NOW - 2 * HOUR })
    store.write({ seq: 1, drafts: [], closed: [encode(row('late', { startedAt: NOW })), encode(long)] })
    t.strictSame(await look(), ['late', 'long'])
    t.strictSame(await look(), [])
    // The request was marked as interrupted, and is now written as ended.
    store.write({ seq: 2, drafts: [], closed: [encode(long)] })
    t.strictSame(await look(), ['long'])
    const many = Array.from({ length: 5 }, (_, n) => encode(row(`m${n}`, { startedAt: NOW + n })))
    store.write({ seq: 3, drafts: [], closed: many })
    t.strictSame(
      [await look(2), await look(2), await look(2), await look(2)], [['m1', 'm0'], ['m3', 'm2'], ['m4'], []],
    )
  })
  const open = openView(file)
  const again = open.read(NOW, view => logs(view, { after: '999999' }, null))
  t.equal(again.rows.length, 8, 'a cursor beyond the last row of a new ledger starts from the first row')
  open.close()
  store.close()
})

t.test('without a period the log has the last 24 hours and requests with a start in the future', async t => {
  const file = filled(t.testdir(), [
    row('gone', { startedAt: NOW - DAY - 1 }),
    row('in', { startedAt: NOW - DAY }),
    row('ahead', { startedAt: NOW + 500 }),
  ])
  await withReports(file, async reports => {
    t.strictSame((await reports.logs({}, null)).rows.map(one => one.request_id), ['ahead', 'in'])
  })
})

t.test('an invalid cursor or limit is refused', async t => {
  const file = filled(t.testdir(), [])
  await withReports(file, async reports => {
    t.match(await reports.logs({}, null), { rows: { length: 0 }, next: null, last: String })
    await t.rejects(reports.logs({ before: 'x' }, null), { code: 'bad_request', field: 'before' })
    await t.rejects(reports.logs({ after: '1; DROP' }, null), { code: 'bad_request', field: 'after' })
    await t.rejects(
      reports.logs({ key: 'a', without: 'model,key' }, null), { code: 'bad_request', field: 'without' },
    )
    await t.rejects(
      reports.logs({ from: iso(NOW), to: iso(NOW) }, null), { code: 'bad_request', field: 'to' },
    )
    await t.rejects(
      reports.logs({ from: '2026-13-45T00:00:00Z' }, null), { code: 'bad_request', field: 'from' },
    )
  })
})
