import t from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { draft, row } from '../../ledger/rows.ts'
import { DAY, filled, HOUR, NOW, withReports } from './filled.ts'

const OCTOBER = Date.UTC(2026, 9)
const NOVEMBER = Date.UTC(2026, 10)
const DECEMBER = Date.UTC(2026, 11)

t.test('a statement has the sums of each day of its month in UTC', async t => {
  const file = filled(t.testdir(), [
    row('before', { startedAt: OCTOBER - 1, costPico: 1n }),
    row('last', { startedAt: NOVEMBER - 1, costPico: 10n, model: 'b' }),
    row('first', { startedAt: OCTOBER, costPico: 100n, model: 'a' }),
    row('second', { startedAt: OCTOBER + DAY, costPico: 1000n, model: 'b' }),
    row('after', { startedAt: NOVEMBER, costPico: 10_000n }),
    row('of another', { startedAt: OCTOBER, costPico: 100_000n, key: 'team-b' }),
  ])
  await withReports(file, async reports => {
    const query = { key: 'team-a', month: '2026-10' }
    const { from, to, lines, days, total } = await reports.statement(query, null)
    t.strictSame([from, to], ['2026-10-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z'])
    t.strictSame(lines.map(({ model, figures }) => [model, figures.cost_usd]), [
      ['b', '0.00000000101'], ['a', '0.0000000001'],
    ])
    t.strictSame(days.map(({ day, figures }) => [day, figures.cost_usd]), [
      ['2026-10-01', '0.0000000001'], ['2026-10-02', '0.000000001'], ['2026-10-31', '0.00000000001'],
    ])
    t.equal(total.cost_usd, '0.00000000111')
  })
})

t.test('a statement is final after its month has ended and no request of that month is running', async t => {
  const file = filled(t.testdir(), [])
  const running = new LedgerStore(file, 'running')
  t.teardown(() => running.close())
  const drafts = [
    draft('theirs', { startedAt: NOVEMBER - HOUR, key: 'team-b' }),
    draft('mine', { startedAt: NOVEMBER, key: 'team-a' }),
  ]
  running.write({ seq: 1, drafts: drafts.map(encode), closed: [] })
  const isFinal = (key: string, month: string, now: number) => withReports(
    file, async reports => (await reports.statement({ key, month }, null)).final, { now: () => now },
  )
  t.equal(await isFinal('team-a', '2026-10', NOW), true, 'a running request of another key does not matter')
  t.equal(await isFinal('team-b', '2026-10', NOW), false, 'a request of the key in that month is running')
  t.equal(await isFinal('team-b', '2026-11', NOW), false, 'the month has not ended')
  t.equal(await isFinal('team-b', '2026-11', DECEMBER - 1), false, 'the last millisecond of the month')
  t.equal(await isFinal('team-b', '2026-11', DECEMBER), true)
  t.equal(await isFinal('team-a', '2026-11', DECEMBER), false)
})

t.test('the statement of an owner covers all keys of that owner', async t => {
  const file = filled(t.testdir(), [
    row('1', { startedAt: OCTOBER, costPico: 1n, key: 'a', model: 'm' }),
    row('2', { startedAt: OCTOBER, costPico: 20n, key: 'b', model: 'm' }),
    row('3', { startedAt: OCTOBER, costPico: 300n, key: 'other' }),
    row('4', { startedAt: OCTOBER + DAY, costPico: null, key: 'b', model: 'n' }),
  ])
  const owners = new Map([['a', 'research'], ['b', 'research'], ['other', 'sales']])
  await withReports(file, async reports => {
    const query = { owner: 'research', month: '2026-10' }
    const { key, owner, keys, lines, days, total } = await reports.statement(query, null, owners)
    t.strictSame([key, owner], [null, 'research'])
    t.strictSame(keys.map(one => [one.key, one.figures.cost_usd]), [['b', '0.00000000002'], ['a', '0.000000000001']])
    t.strictSame(lines.map(({ model, figures }) => [model, figures.cost_usd]), [['m', '0.000000000021'], ['n', null]])
    t.strictSame(days.map(({ day }) => day), ['2026-10-01', '2026-10-02'])
    t.strictSame([total.cost_usd, total.unpriced_requests], ['0.000000000021', 1])
    await t.rejects(reports.statement({ ...query, key: 'a' }, null, owners), { code: 'bad_request' })
    await t.rejects(reports.statement(query, 'a', owners), { code: 'forbidden', field: 'owner' })
  })
})
