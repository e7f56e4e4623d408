import { join } from 'node:path'
import t from 'tap'
import { openReader } from '../../src/ledger/query.ts'
import type { Filter } from '../../src/ledger/query.ts'
import type { LedgerRow } from '../../src/ledger/row.ts'
import { draft, MIDNIGHT, NOTHING_USED, row } from './rows.ts'
import { watch } from './watched.ts'

const HOUR = 3_600_000

async function written(t: Tap, rows: readonly LedgerRow[]): Promise<string> {
  const file = join(t.testdir(), 'gateway.db')
  const { ledger } = watch(file)
  for (const one of rows) ledger.close(one)
  await ledger.shutdown()
  return file
}

type Tap = Pick<typeof t, 'testdir'>

t.test('rows come oldest first, however they were written, page after page', async t => {
  // Many of the same millisecond, across the pages' edges.
  const rows = Array.from({ length: 3500 }, (_, n) =>
    row(`r${n}`, { startedAt: MIDNIGHT + Math.floor(n / 700) }))
  const file = await written(t, rows.toReversed())
  using reader = openReader(file)
  const read = [...reader.rows({})]
  t.strictSame(new Set(read.map(({ requestId }) => requestId)).size, rows.length)
  t.strictSame(read.map(({ startedAt }) => startedAt), rows.map(({ startedAt }) => startedAt))
})

t.test('filters choose by time, key and model', async t => {
  const file = await written(t, [
    row('a', { startedAt: MIDNIGHT, key: 'team-a', model: 'gpt-4.1' }),
    row('b', { startedAt: MIDNIGHT + HOUR, key: 'team-b', model: 'gpt-4.1-mini' }),
    row('c', { startedAt: MIDNIGHT + 2 * HOUR, key: 'TEAM-a', model: 'claude[1]?' }),
    row('d', { startedAt: MIDNIGHT + 3 * HOUR, key: null, model: null }),
  ])
  using reader = openReader(file)
  const cases: [Filter, string][] = [
    [{}, 'abcd'],
    [{ since: MIDNIGHT + HOUR }, 'bcd'],
    [{ until: MIDNIGHT + HOUR }, 'a'],
    [{ since: MIDNIGHT + 1, until: MIDNIGHT + 2 * HOUR + 1 }, 'bc'],
    [{ key: 'team-a' }, 'a'],
    [{ key: 'team-*' }, 'ab'],
    [{ key: '*' }, 'abc'],
    [{ model: 'gpt-4.1' }, 'a'],
    [{ model: '*4.1*' }, 'ab'],
    [{ model: 'claude[1]?' }, 'c'],
    [{ model: '*[1]?' }, 'c'],
    [{ model: '*[14]*' }, ''],
    [{ key: 'team-*', model: '*-mini' }, 'b'],
    [{ key: "'; DROP TABLE requests" }, ''],
  ]
  for (const [filter, ids] of cases) {
    t.equal([...reader.rows(filter)].map(({ requestId }) => requestId).join(''), ids, JSON.stringify(filter))
    t.equal(reader.sums(filter, null)[0]?.requests ?? 0, ids.length)
    t.equal(reader.latest(filter, 2).map(({ requestId }) => requestId).join(''), ids.slice(-2))
  }
})

t.test('sums are exact: beyond 2^53 tokens, beyond 2^63 picodollars', async t => {
  const dear = 2n ** 63n - 1n
  const usage = {
    ...NOTHING_USED,
    inputTokens: Number.MAX_SAFE_INTEGER,
    cacheWrite5mTokens: 3,
    cacheWrite1hTokens: null,
    outputTokens: 1,
  }
  const file = await written(t, Array.from({ length: 5 }, (_, n) => row(`r${n}`, { costPico: dear, usage })))
  using reader = openReader(file)
  t.strictSame(reader.sums({}, null), [{
    group: null,
    requests: 5,
    inputTokens: 5n * BigInt(Number.MAX_SAFE_INTEGER),
    cachedInputTokens: 0n,
    cacheWriteTokens: 15n,
    outputTokens: 5n,
    reasoningTokens: 0n,
    costPico: 5n * dear,
    unpriced: 0,
  }])
})

t.test('groups are by key, by model as asked, and by UTC day', async t => {
  const file = await written(t, [
    row('a', { startedAt: MIDNIGHT - 1, key: 'k1', model: 'm1', costPico: 1n }),
    row('b', { startedAt: MIDNIGHT, key: 'k2', model: 'm1', costPico: 20n }),
    row('c', { startedAt: MIDNIGHT + 24 * HOUR - 1, key: 'k1', model: 'm2', costPico: 300n }),
    row('d', { startedAt: MIDNIGHT + 24 * HOUR, key: 'k1', model: 'm2', costPico: null }),
    row('e', { startedAt: MIDNIGHT + 24 * HOUR, key: null, model: 'm3', costPico: null }),
  ])
  using reader = openReader(file)
  const brief = (by: 'key' | 'model' | 'day') => reader.sums({}, by)
    .map(({ group, requests, costPico, unpriced }) => [group, requests, costPico, unpriced])
  t.strictSame(brief('key'), [[null, 1, null, 1], ['k1', 3, 301n, 1], ['k2', 1, 20n, 0]])
  t.strictSame(brief('model'), [['m1', 2, 21n, 0], ['m2', 2, 300n, 1], ['m3', 1, null, 1]])
  t.strictSame(brief('day'), [
    ['2026-11-20', 1, 1n, 0],
    ['2026-11-21', 2, 320n, 0],
    ['2026-11-22', 2, null, 2],
  ])
  t.strictSame(reader.sums({ key: 'nobody' }, null), [])
})

t.test('a reader sees what the writer writes meanwhile, and does not hold it up', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const { ledger } = watched
  for (let n = 0; n < 3000; n += 1) ledger.close(row(`r${n}`, { startedAt: MIDNIGHT + n }))
  await ledger.flush()
  using reader = openReader(file)
  const rows = reader.rows({})
  t.equal(rows.next().value?.requestId, 'r0')
  ledger.close(row('late', { startedAt: MIDNIGHT + 5000 }))
  await ledger.flush()
  t.equal([...rows].at(-1)?.requestId, 'late')
  t.strictSame(watched.told, [])
})

t.test('find tells running requests from ended ones', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  watched.ledger.open(() => draft('a', { startedAt: MIDNIGHT + 1 }))
  watched.ledger.close(row('a'))
  await watched.ledger.flush()
  using reader = openReader(file)
  t.strictSame(reader.find('a'), [
    { row: row('a'), running: false },
    { row: draft('a', { startedAt: MIDNIGHT + 1 }), running: true },
  ])
  t.strictSame(reader.find('b'), [])
})

t.test('what is no ledger is refused in words', async t => {
  const dir = t.testdir({ 'empty.db': '', 'text.db': 'no database' })
  t.throws(() => openReader(join(dir, 'none.db')), { code: 'missing', message: /no such file/ })
  t.throws(() => openReader(join(dir, 'empty.db')), { name: 'LedgerError', code: 'missing' })
  t.throws(() => openReader(join(dir, 'text.db')), /not a database/)
})
