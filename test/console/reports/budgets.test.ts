import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { budgets as budgetsOf } from '../../../src/console/reports/budgets.ts'
import { openView } from '../../../src/console/reports/view.ts'
import type { Sql } from '../../../src/console/reports/view.ts'
import { row } from '../../ledger/rows.ts'
import { DAY, filled, iso, NOW, withReports } from './filled.ts'

const USD = 10n ** 12n

t.test('the report of a budget has the current spend and the spend by day', async t => {
  const file = filled(t.testdir(), [
    row('a', { startedAt: NOW - 60 * DAY, key: 'x', model: 'gpt-5', costPico: 5n * USD }),
    row('b', { startedAt: NOW - 3 * DAY, key: 'x', model: 'gpt-5', costPico: USD }),
    row('c', { startedAt: NOW - 2 * DAY, key: 'x', model: 'claude', costPico: 2n * USD }),
    row('d', { startedAt: NOW, key: 'x', model: null, costPico: USD / 2n }),
    row('e', { startedAt: NOW, key: 'y', model: 'gpt-5', costPico: 100n * USD }),
    row('f', { startedAt: NOW, key: 'x', model: 'gpt-5', costPico: null }),
  ], 4)
  await withReports(file, async reports => {
    const asked = [
      { key: 'x', group: null, model: null, per: 'day', limit_usd: '1' },
      { key: 'x', group: null, model: null, per: 'month', limit_usd: '7' },
      { key: 'x', group: null, model: null, per: 'total', limit_usd: '4.25' },
      { key: 'x', group: null, model: 'gpt-*', per: 'total', limit_usd: '12' },
      { key: 'nobody', group: null, model: null, per: 'day', limit_usd: '0' },
    ] as const
    const { budgets, total: all } = await reports.budgets(asked, {})
    t.equal(all, 5)
    t.strictSame(budgets.map(({ spent_usd: spent, used }) => [spent, used]), [
      ['0.5', 0.5], ['3.5', 0.5], ['8.5', 2], ['6', 0.5], ['0', 0],
    ])
    t.strictSame(budgets.map(({ period_from: from, period_to: to }) => [from, to]), [
      ['2026-11-21T00:00:00.000Z', '2026-11-22T00:00:00.000Z'],
      ['2026-11-01T00:00:00.000Z', '2026-12-01T00:00:00.000Z'],
      [null, null], [null, null],
      ['2026-11-21T00:00:00.000Z', '2026-11-22T00:00:00.000Z'],
    ])
    t.strictSame(budgets[0]?.course, [{ day: '2026-11-21', spent_usd: '0.5' }])
    t.equal(budgets[1]?.course.length, 21)
    t.strictSame(
      budgets[1]?.course.slice(-5).map(({ spent_usd: spent }) => spent), ['0', '1', '3', '3', '3.5'],
    )
    const [, , total] = budgets
    t.equal(total?.course.length, 30)
    t.strictSame([total?.course[0]?.spent_usd, total?.course.at(-1)?.spent_usd], ['5', '8.5'])
    const fullest = await reports.budgets(asked, { limit: 2 })
    t.strictSame(fullest, { budgets: [budgets[2], budgets[0]], total: 5 }, 'only the budgets with the highest share are returned, as many as `limit`')
    t.strictSame(await reports.nearBudgets(asked, 0.9), [{ ...asked[2], used: 2 }])
    t.equal((await reports.nearBudgets(asked, 0.5)).length, 4, 'budgets with at least that share are returned')
    const nothing = { key: 'y', group: null, model: null, per: 'day', limit_usd: '0' } as const
    t.match((await reports.budgets([nothing], {})).budgets, [{ spent_usd: '100', used: 1 }])
    t.strictSame(
      await reports.budgets(asked.filter(({ model }) => model !== null), {}), { budgets: [budgets[3]], total: 1 },
    )
  })
})

t.test('on the 31st, the spend of a monthly budget starts at the first day of the same month', async t => {
  const last = Date.UTC(2026, 11, 31, 12)
  const file = filled(t.testdir(), [
    row('october', { startedAt: last - 80 * DAY, key: 'x', costPico: USD }),
    row('november', { startedAt: Date.UTC(2026, 11) - 1, key: 'x', costPico: 2n * USD }),
    row('first', { startedAt: Date.UTC(2026, 11), key: 'x', costPico: 4n * USD }),
    row('second', { startedAt: Date.UTC(2026, 11, 2), key: 'x', costPico: 8n * USD }),
  ])
  await withReports(file, async reports => {
    const { budgets } = await reports.budgets([
      { key: 'x', group: null, model: null, per: 'month', limit_usd: '100' },
      { key: 'x', group: null, model: null, per: 'total', limit_usd: '100' },
    ], {})
    t.strictSame(budgets.map(({ spent_usd: spent }) => spent), ['12', '15'])
    t.strictSame(budgets.map(({ course }) => [course.length, course[0]?.day, course[0]?.spent_usd]), [
      [31, '2026-12-01', '4'], [30, '2026-12-02', '15'],
    ])
  }, { now: () => last })
})

t.test('the number of queries does not grow with the number of budgets', async t => {
  const keys = Array.from({ length: 20 }, (_, n) => `key-${n}`)
  const file = filled(t.testdir(), keys.flatMap(key => [
    row(`${key} a`, { startedAt: NOW - 40 * DAY, key, model: 'gpt-5', costPico: USD }),
    row(`${key} b`, { startedAt: NOW, key, model: 'gpt-5', costPico: 2n * USD }),
    row(`${key} c`, { startedAt: NOW, key, model: 'claude', costPico: 4n * USD }),
  ]))
  const open = openView(file)
  t.teardown(() => open.close())
  const told = (some: readonly string[]) => open.read(NOW, view => {
    let questions = 0
    const counting = { ...view, all: (query: Sql) => (questions++, view.all(query)) }
    const asked = some.map(key => ({ key, group: null, model: 'gpt-*', per: 'total', limit_usd: '10' } as const))
    const { budgets } = budgetsOf(counting, asked, null)
    return { questions, spent: new Set(budgets.map(({ spent_usd: usd }) => usd)) }
  })
  t.strictSame(told(keys), told(keys.slice(0, 2)))
  t.strictSame(told(keys).spent, new Set(['3']))
})

t.test('the budget of a group includes the spend of its child groups and of deleted rows', async t => {
  const file = filled(t.testdir(), [
    row('a', { startedAt: NOW - 40 * DAY, key: 'x', group: 'company', costPico: USD }),
    row('b', { startedAt: NOW - 2 * DAY, key: 'x', group: 'research', costPico: 2n * USD }),
    row('c', { startedAt: NOW - DAY, key: 'y', group: 'company', costPico: 4n * USD }),
    row('d', { startedAt: NOW, key: 'x', group: 'research', costPico: 8n * USD }),
    row('e', { startedAt: NOW, key: 'company', group: null, costPico: 100n * USD }),
  ], 3)
  const ledger = new DatabaseSync(file)
  ledger.exec(`DELETE FROM requests WHERE request_id = 'a'`)
  ledger.close()
  const company = { name: 'company', members: ['company', 'research'] }
  const research = { name: 'research', members: ['research'] }
  await withReports(file, async reports => {
    const asked = [
      { key: null, group: company, model: null, per: 'total', limit_usd: '30' },
      { key: null, group: company, model: null, per: 'month', limit_usd: '20' },
      { key: null, group: research, model: null, per: 'day', limit_usd: '10' },
      { key: 'company', group: null, model: null, per: 'day', limit_usd: '200' },
    ] as const
    const { budgets } = await reports.budgets(asked, {})
    t.strictSame(budgets.map(({ key, group, spent_usd: spent, used }) => [key, group, spent, used]), [
      [null, 'company', '15', 0.5], [null, 'company', '14', 0.7], [null, 'research', '8', 0.8], ['company', null, '100', 0.5],
    ])
    t.strictSame(budgets[1]?.course.slice(-4).map(({ spent_usd: spent }) => spent), ['0', '2', '6', '14'])
    t.strictSame(await reports.nearBudgets(asked, 0.8), [{ ...asked[2], used: 0.8 }])
  })
})

t.test('models without a price are listed by the number of their requests in the last 24 hours', async t => {
  const file = filled(t.testdir(), [
    ...['a', 'b', 'b', 'b', 'c', 'c'].map(
      (model, n) => row(String(n), { startedAt: NOW - n, model, costPico: null }),
    ),
    row('old', { startedAt: NOW - DAY - 1, model: 'c', costPico: null }),
    row('priced', { startedAt: NOW, model: 'a' }),
    row('none', { startedAt: NOW, model: null, costPico: null }),
  ])
  await withReports(file, async reports => {
    t.strictSame(await reports.unpricedModels(2), [{ name: 'b', requests: 3 }, { name: 'c', requests: 2 }])
  })
})

t.test('a key has the sums of the last 30 days and the time of its last use; filters list only recent names', async t => {
  const file = filled(t.testdir(), [
    row('a', { startedAt: NOW - 100 * DAY, key: 'old', model: 'gone' }),
    row('b', { startedAt: NOW - 5 * DAY, key: 'x' }),
    row('c', { startedAt: NOW - 40 * DAY, key: 'x' }),
    row('d', { startedAt: NOW, key: 'y', model: 'new', upstream: 'fresh' }),
    row('e', { startedAt: NOW, key: null, model: null, upstream: null }),
  ], 3)
  await withReports(file, async reports => {
    const use = await reports.keyUse()
    t.strictSame([...use].map(([name, { figures, last_used_at: last }]) => [name, figures.requests, last]), [
      ['old', 0, iso(NOW - 100 * DAY)], ['x', 1, iso(NOW - 5 * DAY)], ['y', 1, iso(NOW)],
    ])
    t.strictSame(await reports.filters(null), {
      keys: ['x', 'y'], models: ['gpt-4.1-mini', 'new'], upstreams: ['fresh', 'openai'],
    })
    t.strictSame(await reports.filters('y'), { keys: ['y'], models: ['new'], upstreams: [] })
  })
})
