import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { row } from '../../ledger/rows.ts'
import { toVersion7 } from '../../ledger/version-7.ts'
import { DAY, filled, iso, NOW, withReports } from './filled.ts'

const MIDNIGHT = NOW - (NOW % DAY)
const USD = 10n ** 12n

t.test('the chart of spend has the twelve most expensive groups and the sum of all other groups', async t => {
  // Together more than 2^63 picodollars.
  const rows = Array.from({ length: 14 }, (_, n) => [
    row(`yesterday ${n}`, { startedAt: MIDNIGHT - 1, key: `key-${n}`, costPico: BigInt(1_000_000 - n) * USD }),
    row(`today ${n}`, { startedAt: MIDNIGHT, key: `key-${n}`, costPico: BigInt(14 - n) * USD }),
  ]).flat()
  const nobody = row('nobody', { startedAt: MIDNIGHT, key: null, costPico: 2_000_000n * USD })
  const free = row('free', { startedAt: MIDNIGHT, key: 'free', costPico: 0n })
  const file = filled(t.testdir(), [...rows, nobody, free], 20)
  await withReports(file, async reports => {
    const range = { from: iso(MIDNIGHT - DAY + 1), to: iso(MIDNIGHT + 1) }
    const { from, to, days, groups } = await reports.billing(range, null)
    t.strictSame([from, to], [iso(MIDNIGHT - DAY), iso(MIDNIGHT + DAY)])
    t.strictSame(groups.slice(0, 3).map(({ name }) => name), [null, 'key-0', 'key-1'])
    t.strictSame(days.map(({ day, cost_usd: cost, others_cost_usd: others, parts }) =>
      [day, cost, others, parts.length]), [
      ['2026-11-20', '13999909', '2999964', 11],
      ['2026-11-21', '2000105', '6', 12],
    ])
    t.strictSame(days[1]?.parts.slice(0, 2), [
      { name: null, names: [null], cost_usd: '2000000' }, { name: 'key-0', names: ['key-0'], cost_usd: '14' },
    ])
  })
})

t.test('requests are summed by up to three of key, model, upstream, owner, protocol and status', async t => {
  const of = (id: string, startedAt: number, more: object, usd: number) =>
    row(id, { startedAt, key: 'a', model: 'm', upstream: 'u', ...more, costPico: BigInt(usd) * USD })
  const file = filled(t.testdir(), [
    of('1', MIDNIGHT - 1, {}, 1),
    of('2', MIDNIGHT, { model: 'n', protocol: 'messages' }, 20),
    of('3', MIDNIGHT, { key: 'b', status: 503, end: 'error' }, 300),
    of('4', MIDNIGHT, { key: 'b', group: 'science', status: null, end: 'error' }, 4000),
    of('5', MIDNIGHT + 1, { key: null }, 50_000),
  ], 4)
  const owners = new Map([['a', 'research'], ['b', 'research'], ['c', 'nobody']])
  await withReports(file, async reports => {
    const range = { from: iso(MIDNIGHT - DAY), to: iso(MIDNIGHT + DAY) }
    const sums = async (query: object) => {
      const { groups, total } = await reports.billing({ ...range, ...query }, null, owners)
      return [...groups.map(({ names, figures }) => [...names, figures.cost_usd]), total.cost_usd]
    }
    t.strictSame(await sums({ by: 'key,model' }), [
      [null, 'm', '50000'], ['b', 'm', '4300'], ['a', 'n', '20'], ['a', 'm', '1'], '54321',
    ])
    t.strictSame(await sums({ by: 'owner' }), [[null, '50000'], ['research', '4321'], '54321'])
    t.strictSame(await sums({ by: 'model,owner', owner: 'research' }), [
      ['m', 'research', '4301'], ['n', 'research', '20'], '4321',
    ])
    t.strictSame(await sums({ by: 'protocol', key: 'a' }), [['messages', '20'], ['chat', '1'], '21'])
    t.strictSame(await sums({ by: 'status,key' }), [
      ['200', null, '50000'], [null, 'b', '4000'], ['503', 'b', '300'], ['200', 'a', '21'], '54321',
    ])
    t.strictSame(await sums({ by: 'group,key', key: 'b' }), [['science', 'b', '4000'], [null, 'b', '300'], '4300'])
    t.strictSame(await sums({ by: 'upstream,key,model', model: 'n' }), [['u', 'a', 'n', '20'], '20'])
    const { days, charted } = await reports.billing({ ...range, by: 'owner,protocol' }, null, owners)
    t.strictSame(charted.map(({ names }) => names), [[null, 'chat'], ['research', 'chat'], ['research', 'messages']])
    t.strictSame(days.map(({ parts }) => parts.map(({ names, cost_usd: cost }) => [...names, cost])), [
      [['research', 'chat', '1']],
      [[null, 'chat', '50000'], ['research', 'chat', '4300'], ['research', 'messages', '20']],
    ])
    await t.rejects(reports.billing({ by: 'key,key' }, null), { code: 'bad_request', field: 'by' })
  })
})

t.test('a page of groups has the requested order and the total of all groups', async t => {
  const rows = ['one', 'two', 'three', 'four'].flatMap((key, n) =>
    Array.from({ length: n + 1 }, (_, i) => row(`${key} ${i}`, { startedAt: MIDNIGHT, key, costPico: BigInt(10 - n) * USD })))
  await withReports(filled(t.testdir(), rows), async reports => {
    const page = async (query: object) => {
      const { groups, groups_total: all, total } = await reports.billing({ from: iso(MIDNIGHT), ...query }, null)
      t.equal(total.requests, 10)
      return [all, ...groups.map(({ name }) => name)]
    }
    t.strictSame(await page({ limit: 2 }), [4, 'four', 'three'])
    t.strictSame(await page({ limit: 2, offset: 2 }), [4, 'two', 'one'])
    t.strictSame(await page({ sort: 'requests', order: 'asc', limit: 1 }), [4, 'one'])
    t.strictSame(await page({ sort: 'name' }), [4, 'four', 'one', 'three', 'two'])
    t.strictSame(await page({ search: 'T', sort: 'name', order: 'desc' }), [2, 'two', 'three'])
  })
})

t.test('the cost of a group is null if no cost of its requests is known', async t => {
  const at = (ago: number, key: string, costPico: bigint | null) =>
    row(`${key} ${ago} ${costPico}`, { startedAt: MIDNIGHT - ago * DAY, key, costPico, source: 'estimated' })
  const file = filled(t.testdir(), [
    at(1, 'unknown', null), at(1, 'refused', 0n), at(0, 'partly', null), at(0, 'partly', USD), at(0, 'unknown', null),
  ])
  await withReports(file, async reports => {
    const range = { from: iso(MIDNIGHT - 2 * DAY), to: iso(MIDNIGHT + DAY) }
    const { groups, total, days } = await reports.billing(range, null)
    t.strictSame(groups.map(({ name, figures }) => [name, figures.cost_usd, figures.unpriced_requests]), [
      ['partly', '1', 1], ['unknown', null, 2], ['refused', '0', 0],
    ])
    t.equal(total.cost_usd, '1')
    t.strictSame(days.map(day => [day.cost_usd, day.unpriced_requests]), [['0', 0], [null, 1], ['1', 2]])
    const { slices } = await reports.panel({ ...range, from: iso(MIDNIGHT - 4 * DAY) }, null)
    t.strictSame(slices.slice(2, 5).map(slice => [slice.cost_usd, slice.unpriced_requests]), [['0', 0], [null, 1], ['1', 2]])
    const pieces: string[] = []
    for await (const piece of reports.billingCsv(range, null)) pieces.push(piece)
    t.match(pieces.join('').split('\r\n'), [/^key,requests/, /^partly,2,/, /^unknown,2,0,\d+,\d*,\d*,\d+,\d*,,2,/])
  })
})

t.test('sums by protocol, status and group include deleted rows', async t => {
  const file = filled(t.testdir(), [
    row('old', { startedAt: MIDNIGHT - DAY, status: null, group: 'science' }), row('new', { startedAt: MIDNIGHT }),
  ])
  deleteRows(file, 'old')
  await withReports(file, async reports => {
    const range = { from: iso(MIDNIGHT - DAY), to: iso(MIDNIGHT + DAY), by: 'protocol,status,group' }
    const { groups, missing_requests: missing } = await reports.billing(range, null)
    t.strictSame(groups.map(({ names }) => names), [['chat', null, 'science'], ['chat', '200', null]])
    t.equal(missing, 0)
  })
})

t.test('a report by protocol has the number of requests from days without sums by protocol', async t => {
  const file = filled(t.testdir(), [row('old', { startedAt: MIDNIGHT - DAY }), row('new', { startedAt: MIDNIGHT })])
  toVersion7(file)
  new LedgerStore(file, 'later').close()
  deleteRows(file, 'old')
  await withReports(file, async reports => {
    const range = { from: iso(MIDNIGHT - DAY), to: iso(MIDNIGHT + DAY) }
    const missing = async (by: string) => (await reports.billing({ ...range, by }, null)).missing_requests
    t.equal(await missing('protocol'), 1)
    t.equal(await missing('key'), 0)
  })
})

function deleteRows(file: string, id: string): void {
  using db = new DatabaseSync(file)
  db.prepare('DELETE FROM requests WHERE request_id = ?').run(id)
}
