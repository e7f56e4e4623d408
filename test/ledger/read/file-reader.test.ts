import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t from 'tap'
import { COLUMNS, encode } from '../../../src/ledger/columns.ts'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import type { Filter } from '../../../src/ledger/read/ledger-reader.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { add, byGroups } from '../../../src/ledger/read/usage-sum.ts'
import type { RowGroup, UsageSum } from '../../../src/ledger/read/usage-sum.ts'
import { draft, MIDNIGHT, NOTHING_USED, row } from '../rows.ts'
import { VERSION_1 } from '../version-1.ts'
import { watch } from '../watched.ts'

const HOUR = 3_600_000

async function written(t: Tap, rows: readonly LedgerRow[]): Promise<string> {
  const file = join(t.testdir(), 'gateway.db')
  const { ledger } = watch(file)
  for (const one of rows) ledger.close(one)
  await ledger.shutdown()
  return file
}

type Tap = Pick<typeof t, 'testdir'>

/** Writes a ledger file as a killed gateway leaves it. */
function killed(file: string, closed: readonly LedgerRow[], drafts: readonly LedgerRow[]): void {
  const store = new LedgerStore(file, 'killed')
  store.write({ seq: 1, drafts: drafts.map(encode), closed: closed.map(encode) })
  store.abandon()
}

t.test('rows are read oldest first over all pages, in whatever order they were written', async t => {
  // Many of the same millisecond, across the pages' edges.
  const rows = Array.from({ length: 3500 }, (_, n) =>
    row(`r${n}`, { startedAt: MIDNIGHT + Math.floor(n / 700) }))
  const file = await written(t, rows.toReversed())
  using reader = openReader(file)
  const read = [...reader.rows({})]
  t.strictSame(new Set(read.map(({ requestId }) => requestId)).size, rows.length)
  t.strictSame(read.map(({ startedAt }) => startedAt), rows.map(({ startedAt }) => startedAt))
  t.strictSame(reader.latest({}, 1000), read.slice(-1000))
})

t.test('filters select by time, key and model', async t => {
  const file = await written(t, [
    row('a', { startedAt: MIDNIGHT, key: 'team-a', model: 'gpt-4.1' }),
    row('b', { startedAt: MIDNIGHT + HOUR, key: 'team-b', model: 'gpt-4.1-mini' }),
    row('c', { startedAt: MIDNIGHT + 2 * HOUR, key: 'TEAM-a', model: 'claude[1]?' }),
    row('d', { startedAt: MIDNIGHT + 3 * HOUR, key: null, model: null }),
  ])
  using reader = openReader(file)
  const cases: [Filter, string][] = [
    [{}, 'abcd'],
    [{ since: MIDNIGHT }, 'abcd'],
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
    t.equal(reader.sums(filter, [])[0]?.requests ?? 0, ids.length)
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
  t.strictSame(reader.sums({}, []), [{
    groups: [],
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

t.test('sums group by up to three columns of a row', async t => {
  const at = MIDNIGHT + 90 * 60_000
  const file = await written(t, [
    row('a', { startedAt: at, key: 'k1', group: 'g', owner: 'o', model: 'm1', costPico: 1n }),
    row('b', { startedAt: at + 59_999, key: 'k1', group: 'g', owner: 'o', model: 'm2', status: 429, costPico: null }),
    row('c', { startedAt: at + 60_000, key: 'k2', protocol: 'messages', model: 'm1', costPico: 20n }),
  ])
  using reader = openReader(file)
  const groups = (...by: RowGroup[]) => reader.sums({}, by).map(({ groups, costPico, unpriced }) => [...groups, costPico, unpriced])
  t.strictSame(groups('key', 'model'), [['k1', 'm1', 1n, 0], ['k1', 'm2', null, 1], ['k2', 'm1', 20n, 0]])
  t.strictSame(groups('group'), [[null, 20n, 0], ['g', 1n, 1]], 'null is a separate group')
  t.strictSame(groups('protocol', 'status', 'upstream'), [
    ['chat', '200', 'openai', 1n, 0], ['chat', '429', 'openai', null, 1], ['messages', '200', 'openai', 20n, 0],
  ])
  t.strictSame(groups('minute'), [['2026-11-21T01:30Z', 1n, 1], ['2026-11-21T01:31Z', 20n, 0]])
  t.strictSame(groups('day', 'hour'), [['2026-11-21', '2026-11-21T01:00Z', 21n, 1]])
})

t.test('rows and sums are selected by user and tags', async t => {
  const file = await written(t, [
    row('a', { user: 'u1', tags: { project: 'alpha', env: 'prod' } }), row('b', { user: 'u2', tags: { project: 'alpine' } }),
    row('c', { tags: { env: 'alpha' } }), row('d', { user: 'u1' }),
  ])
  using reader = openReader(file)
  const found = (filter: Filter) => Array.from(reader.rows(filter), ({ requestId }) => requestId).join('')
  t.equal(found({ user: 'u1' }), 'ad')
  t.equal(found({ user: 'u*' }), 'abd')
  t.equal(found({ tags: { project: 'alpha' } }), 'a')
  t.equal(found({ tags: { project: 'alp*' } }), 'ab')
  t.equal(found({ tags: { project: 'alpha', env: 'prod' }, user: 'u1', key: 'team-a' }), 'a')
  const sums = (filter: Filter, ...by: RowGroup[]) => reader.sums(filter, by).map(({ groups, requests }) => [...groups, requests])
  t.strictSame(sums({}, 'tag:project'), [[null, 2], ['alpha', 1], ['alpine', 1]])
  t.strictSame(sums({ tags: { project: 'alpha' } }, 'user', 'day'), [['u1', '2026-11-21', 1]])
  t.strictSame(sums({ user: 'u1' }), [[2]])
})

t.test('sums group by key, requested model and UTC day', async t => {
  const file = await written(t, [
    row('a', { startedAt: MIDNIGHT - 1, key: 'k1', model: 'm1', costPico: 1n }),
    row('b', { startedAt: MIDNIGHT, key: 'k2', model: 'm1', costPico: 20n }),
    row('c', { startedAt: MIDNIGHT + 24 * HOUR - 1, key: 'k1', model: 'm2', costPico: 300n }),
    row('d', { startedAt: MIDNIGHT + 24 * HOUR, key: 'k1', model: 'm2', costPico: null }),
    row('e', { startedAt: MIDNIGHT + 24 * HOUR, key: null, model: 'm3', costPico: null }),
  ])
  using reader = openReader(file)
  const brief = (by: 'key' | 'model' | 'day') => reader.sums({}, [by])
    .map(({ groups: [group], requests, costPico, unpriced }) => [group, requests, costPico, unpriced])
  t.strictSame(brief('key'), [[null, 1, null, 1], ['k1', 3, 301n, 1], ['k2', 1, 20n, 0]])
  t.strictSame(brief('model'), [['m1', 2, 21n, 0], ['m2', 2, 300n, 1], ['m3', 1, null, 1]])
  t.strictSame(brief('day'), [
    ['2026-11-20', 1, 1n, 0],
    ['2026-11-21', 2, 320n, 0],
    ['2026-11-22', 2, null, 2],
  ])
  t.strictSame(reader.sums({ key: 'nobody' }, []), [])
})

const DAY = 24 * HOUR
const NAME = fc.constantFrom(null, '0', 'a', 'a*', 'A', 'ab', 'b')
const ROW = fc.record({
  startedAt: fc.integer({ min: MIDNIGHT - 2 * DAY, max: MIDNIGHT + 2 * DAY }),
  key: NAME, model: NAME, upstream: NAME, group: NAME, protocol: NAME, user: NAME,
  tags: fc.option(fc.record({ project: fc.constantFrom('0', 'a', 'a*', 'b "?"'), env: fc.constantFrom('a', 'b') }, { requiredKeys: [], noNullPrototype: true })),
  status: fc.constantFrom(null, 200, 429),
  costPico: fc.option(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n })),
  inputTokens: fc.option(fc.maxSafeNat()), cacheWrite5mTokens: fc.option(fc.nat()), cacheWrite1hTokens: fc.option(fc.maxSafeNat()),
}).map(({ inputTokens, cacheWrite5mTokens, cacheWrite1hTokens, ...names }) => (
  { ...names, usage: { ...NOTHING_USED, inputTokens, cacheWrite5mTokens, cacheWrite1hTokens } }))
/** Often at midnight. */
const MOMENT = fc.option(fc.oneof(fc.integer({ min: -2, max: 3 }).map(days => MIDNIGHT + days * DAY), ROW.map(({ startedAt }) => startedAt)), { nil: undefined })
const GLOB = fc.constantFrom(undefined, undefined, '*', 'a', 'a*', '0')
const BY = fc.uniqueArray(fc.constantFrom<RowGroup>('key', 'group', 'model', 'upstream', 'protocol', 'status', 'user', 'tag:project', 'day', 'hour'), { maxLength: 3 })

/** The sums of rows, computed without SQL. */
function sumsOfRows(rows: Iterable<LedgerRow>, by: readonly RowGroup[]): readonly UsageSum[] {
  const sums = new Map<string, UsageSum>()
  for (const { usage, costPico, startedAt, status, ...names } of rows) {
    const time = new Date(startedAt).toISOString()
    const details: Record<string, unknown> = { ...names, 'tag:project': names.tags?.['project'] ?? null, status: status === null ? null : String(status), day: time.slice(0, 10), hour: `${time.slice(0, 13)}:00Z`, minute: '' }
    const sum: UsageSum = {
      groups: by.map(each => details[each] as string | null),
      requests: 1, costPico, unpriced: costPico === null ? 1 : 0,
      inputTokens: BigInt(usage.inputTokens ?? 0), cachedInputTokens: 0n, outputTokens: 0n, reasoningTokens: 0n,
      cacheWriteTokens: BigInt(usage.cacheWrite5mTokens ?? 0) + BigInt(usage.cacheWrite1hTokens ?? 0),
    }
    const id = JSON.stringify(sum.groups)
    const known = sums.get(id)
    sums.set(id, known === undefined ? sum : add(known, sum))
  }
  return [...sums.values()].sort(byGroups)
}

t.test('property: for every filter, the reader gives the sums of the rows, whether or not a day is already summed', async t => {
  const directory = t.testdir()
  let run = 0
  fc.assert(fc.property(
    fc.array(ROW, { minLength: 1, maxLength: 40 }), fc.nat(40), fc.nat(40), fc.option(fc.integer({ min: -2, max: 2 })),
    fc.array(fc.record({ since: MOMENT, until: MOMENT, key: GLOB, model: GLOB, upstream: GLOB, user: GLOB, tags: fc.option(fc.constantFrom({ project: 'a' }, { project: 'a*', env: 'a' }, { project: '*"?"' }), { nil: undefined }), by: BY }), { minLength: 1, maxLength: 20 }),
    (changes, summed, replaced, detailedFrom, questions) => {
      const file = join(directory, `${++run}.db`)
      const store = new LedgerStore(file, 'one')
      const rows = changes.map((each, n) => encode(row(`r${n}`, each)))
      store.write({ seq: 1, drafts: [], closed: rows.slice(0, summed).map(values => values.with(COLUMNS.indexOf('status'), 500)) })
      while (store.sum());
      store.write({ seq: 2, drafts: [], closed: rows.slice(0, Math.min(summed, replaced)) })
      while (store.sum());
      store.write({ seq: 3, drafts: [], closed: rows.slice(Math.min(summed, replaced)) })
      if (detailedFrom !== null) {
        using db = new DatabaseSync(file)
        db.prepare('UPDATE summed SET detailed_from = ?').run(MIDNIGHT / DAY + detailedFrom)
      }
      using reader = openReader(file)
      for (const { by, ...asked } of questions) {
        const filter = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined)) as Filter
        t.strictSame(reader.sums(filter, by), sumsOfRows(reader.rows(filter), by), JSON.stringify({ ...filter, by }))
      }
      store.close()
    },
  ), { numRuns: 100 })
})

t.test('a reader sees later writes, and does not block the writer', async t => {
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

t.test('the running requests of a killed gateway are read and summed once, like ended requests', t => {
  const file = join(t.testdir(), 'gateway.db')
  const usage = {
    inputTokens: 1, cachedInputTokens: 2, cacheWrite5mTokens: 3, cacheWrite1hTokens: 4,
    outputTokens: 5, reasoningTokens: 6,
  }
  const used = { usage: { ...NOTHING_USED, ...usage }, costPico: 7n }
  const ended = [
    row('a', { ...used, startedAt: MIDNIGHT + 2, costPico: null }),
    row('b', { ...used, startedAt: MIDNIGHT + 4 }),
  ]
  const left = [
    draft('c', { ...used, startedAt: MIDNIGHT + 1, key: 'team-b' }),
    draft('d', { ...used, startedAt: MIDNIGHT + 3 }),
    draft('e', { ...used, startedAt: MIDNIGHT + 5, model: 'other', costPico: null }),
  ]
  killed(file, ended, left)
  using reader = openReader(file)
  const cases: [Filter, string][] = [
    [{}, 'cadbe'],
    [{ since: MIDNIGHT + 3 }, 'dbe'],
    [{ until: MIDNIGHT + 3 }, 'ca'],
    [{ key: 'team-a' }, 'adbe'],
    [{ model: 'other' }, 'e'],
  ]
  for (const [filter, ids] of cases) {
    const text = JSON.stringify(filter)
    t.equal([...reader.rows(filter)].map(({ requestId }) => requestId).join(''), ids, text)
    t.equal(reader.latest(filter, 3).map(({ requestId }) => requestId).join(''), ids.slice(-3), text)
    t.equal(reader.sums(filter, [])[0]?.requests, ids.length, text)
  }
  t.strictSame(reader.sums({}, []), [{
    groups: [],
    requests: 5,
    inputTokens: 5n,
    cachedInputTokens: 10n,
    cacheWriteTokens: 35n,
    outputTokens: 25n,
    reasoningTokens: 30n,
    costPico: 21n,
    unpriced: 2,
  }])
  const costs = (by: 'key' | 'model') => reader.sums({}, [by]).map(({ groups: [group], costPico }) => [group, costPico])
  t.strictSame(costs('key'), [['team-a', 14n], ['team-b', 7n]])
  t.strictSame(costs('model'), [['gpt-4.1-mini', 21n], ['other', null]])
  t.strictSame(reader.find('c'), [{ row: left[0], running: false }])
  t.end()
})

t.test('a sum has a cost even if only a running request of a killed gateway has a cost', t => {
  const file = join(t.testdir(), 'gateway.db')
  killed(file, [row('a', { costPico: null })], [draft('b', { costPico: 7n })])
  using reader = openReader(file)
  t.equal(reader.sums({}, [])[0]?.costPico, 7n)
  t.end()
})

t.test('a gateway that starts during a read makes no row appear twice or go missing', t => {
  const file = join(t.testdir(), 'gateway.db')
  // A page ends between rows of the same millisecond, in which another request was running.
  const ended = Array.from({ length: 2500 }, (_, n) => row(`r${n}`, { startedAt: MIDNIGHT + (n >> 1) }))
  const left = [0, 499, 500, 900, 1300].map(at => draft(`left ${at}`, { startedAt: MIDNIGHT + at }))
  killed(file, ended.slice(1), left)
  using reader = openReader(file)
  const rows = reader.rows({})
  const read = [rows.next().value]
  const starting = new LedgerStore(file, 'starting')
  t.equal(starting.recover().length, left.length)
  starting.close()
  read.push(...rows)
  const started = read.map(one => one?.startedAt ?? 0)
  t.strictSame(started, started.toSorted((a, b) => a - b))
  const ids = [...ended.slice(1), ...left].map(({ requestId }) => requestId).sort()
  t.strictSame(read.map(one => one?.requestId).sort(), ids)
  t.end()
})

t.test('find distinguishes running requests from ended requests', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  for (const startedAt of [MIDNIGHT - 1, MIDNIGHT + 1]) watched.ledger.open(() => draft('a', { startedAt }))
  watched.ledger.close(row('a'))
  await watched.ledger.flush()
  using reader = openReader(file)
  t.strictSame(reader.find('a'), [
    { row: draft('a', { startedAt: MIDNIGHT - 1 }), running: true },
    { row: row('a'), running: false },
    { row: draft('a', { startedAt: MIDNIGHT + 1 }), running: true },
  ])
  t.strictSame(reader.find('b'), [])
  const rows = [row('a')]
  t.strictSame([[...reader.rows({})], reader.latest({}, 9)], [rows, rows], 'a running request is not a row')
  t.equal(reader.sums({}, [])[0]?.requests, 1)
})

t.test('a file that is not a ledger is refused with the reason', async t => {
  const dir = t.testdir({ 'empty.db': '', 'text.db': 'no database' })
  t.throws(() => openReader(join(dir, 'none.db')), { code: 'missing', message: /no such file/ })
  t.throws(() => openReader(join(dir, 'empty.db')), { name: 'StoreError', code: 'missing' })
  t.throws(() => openReader(join(dir, 'text.db')), /not a database/)
  const old = join(dir, 'old.db')
  using db = new DatabaseSync(old)
  db.exec(VERSION_1)
  t.throws(() => openReader(old), { code: 'missing', message: /of an older version: the gateway brings it/ })
})
