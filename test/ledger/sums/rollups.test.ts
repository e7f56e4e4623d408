import { deepStrictEqual } from 'node:assert'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { SUM_COLUMNS, HOUR, PART_SIZE } from '../../../src/ledger/sums/contributions.ts'
import { addHistogramJson, bucketOf, addToBucket } from '../../../src/ledger/sums/first-byte.ts'
import type { Histogram } from '../../../src/ledger/sums/first-byte.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { maybe } from '../../support/maybe.ts'
import { MIDNIGHT, NOTHING_USED, UNBINDABLE, row } from '../rows.ts'

const DAY = 24 * HOUR

/** The expected sums, computed exactly from single rows. */
type Sums = Record<string, Record<string, bigint>>

const NAMES = ['key', 'model', 'upstream'] as const
const DETAILED_NAMES = [...NAMES, 'group', 'protocol', 'status'] as const

function sumsOf(rows: readonly LedgerRow[], unit: number, names: readonly (typeof DETAILED_NAMES)[number][] = NAMES): Sums {
  const sums: Sums = {}
  for (const one of rows) {
    const slot = Math.floor(one.startedAt / unit)
    const sum = sums[JSON.stringify([slot, ...names.map(name => (one[name] === null ? null : String(one[name])))])] ??= {}
    const add = (name: string, value: bigint | number | null) => {
      sum[name] = (sum[name] ?? 0n) + BigInt(value ?? 0)
    }
    const { usage, costPico } = one
    const isEstimated = one.source === 'estimated' || one.source === 'mixed'
    add('requests', 1)
    add('errors', one.end === 'complete' || one.end === 'client_gone' ? 0 : 1)
    add('unpriced', costPico === null ? 1 : 0)
    add('estimated', isEstimated ? 1 : 0)
    add('input', usage.inputTokens)
    add('cached', usage.cachedInputTokens)
    add('cache_write', usage.cacheWrite5mTokens)
    add('cache_write', usage.cacheWrite1hTokens)
    add('output', usage.outputTokens)
    add('reasoning', usage.reasoningTokens)
    add('cost', costPico)
    add('estimated_cost', isEstimated ? costPico : 0n)
  }
  return sums
}

function histogramsOf(rows: readonly LedgerRow[]): Record<string, [number, number][]> {
  const histograms: Record<string, Histogram> = {}
  for (const { startedAt, firstByteMs, upstream, key } of rows) {
    if (firstByteMs === null) continue
    for (const [scope, name] of [[0, ''], [1, upstream], [2, key]] as const) {
      if (name === null) continue
      const id = JSON.stringify([scope, name, Math.floor(startedAt / HOUR)])
      addToBucket(histograms[id] ??= new Map(), bucketOf(firstByteMs), 1)
    }
  }
  return Object.fromEntries(Object.entries(histograms).map(([id, counts]) => [id, sorted(counts)]))
}

function sorted(histogram: Histogram): [number, number][] {
  return [...histogram].sort(([a], [b]) => a - b)
}

/** The sums in the tables, in the same shape, without sums of no requests. */
function inTables(db: DatabaseSync, table: 'hours' | 'days' | 'detailed_days'): Sums {
  const select = db.prepare(`SELECT * FROM ${table} WHERE requests <> 0`)
  select.setReadBigInts(true)
  return Object.fromEntries(select.all().map(stored => {
    const slot = Number(stored[table === 'hours' ? 'hour' : 'day'])
    const names = (table === 'detailed_days' ? DETAILED_NAMES : NAMES)
      .map(name => (typeof stored[name] === 'string' ? stored[name] : null))
    return [JSON.stringify([slot, ...names]), together(stored)]
  }))
}

/** Joins the two columns (high and low) of a sum. */
function together(stored: Readonly<Record<string, unknown>>): Record<string, bigint> {
  const sums: Record<string, bigint> = {}
  for (const column of SUM_COLUMNS) {
    const value = stored[column] as bigint
    const name = column.replace(/_(high|low)$/, '')
    sums[name] = (sums[name] ?? 0n) + (column.endsWith('_high') ? value * BigInt(PART_SIZE) : value)
  }
  return sums
}

function histogramsIn(db: DatabaseSync): Record<string, [number, number][]> {
  return Object.fromEntries(db.prepare('SELECT * FROM first_byte_hours').all().flatMap(stored => {
    const histogram: Histogram = new Map()
    addHistogramJson(histogram, String(stored['counts']))
    const id = JSON.stringify([stored['scope'], stored['name'], stored['hour']])
    return histogram.size === 0 ? [] : [[id, sorted(histogram)] as const]
  }))
}

/** Checks that the tables of sums and of histograms equal the sums of the rows. */
function check(file: string, rows: readonly LedgerRow[]): void {
  using db = new DatabaseSync(file)
  deepStrictEqual(inTables(db, 'hours'), sumsOf(rows, HOUR))
  deepStrictEqual(inTables(db, 'days'), sumsOf(rows, DAY))
  deepStrictEqual(inTables(db, 'detailed_days'), sumsOf(rows, DAY, DETAILED_NAMES))
  deepStrictEqual(histogramsIn(db), histogramsOf(rows))
  const columns = ['requests', 'errors', 'input_low', 'cost_high', 'cost_low']
    .map(name => `sum(${name})`).join(', ')
  for (const [n, name] of ['upstream', 'key', 'model'].entries()) {
    const alone = db.prepare(`SELECT day, name, ${columns} FROM dimension_days
      WHERE dimension = ${n} GROUP BY 1, 2 HAVING sum(requests) > 0 ORDER BY 1, 2`)
    const all = db.prepare(`SELECT day, ${name} AS name, ${columns} FROM days
      GROUP BY 1, 2 HAVING sum(requests) > 0 ORDER BY 1, 2`)
    for (const statement of [alone, all]) statement.setReadBigInts(true)
    deepStrictEqual(alone.all(), all.all())
  }
}

const name = maybe(fc.constantFrom('', 'a', 'b', '0', ' a', '1:a', '-', "x'y"))
const tokens = maybe(fc.oneof(fc.nat(5000), fc.nat(Number.MAX_SAFE_INTEGER)))
const rows: fc.Arbitrary<LedgerRow> = fc.record({
  // From few ids, so that rows share an id, and from many, so that rows do not.
  id: fc.oneof(fc.nat(7), fc.nat(1_000_000)),
  startedAt: fc.nat(3).map(n => MIDNIGHT - HOUR + n * (HOUR / 2)),
  changes: fc.record({
    key: name,
    model: name,
    upstream: name,
    group: name,
    protocol: maybe(fc.constantFrom('chat', 'messages')),
    status: maybe(fc.constantFrom(200, 429, 503)),
    firstByteMs: maybe(fc.nat(2_000_000).map(n => n / 10)),
    end: fc.constantFrom('complete', 'client_gone', 'error', 'refused', 'interrupted'),
    source: fc.constantFrom('reported', 'estimated', 'mixed', 'none'),
    costPico: maybe(fc.oneof(fc.bigInt(0n, 10n ** 10n), fc.bigInt(0n, 2n ** 63n - 1n))),
    usage: fc.record({
      inputTokens: tokens,
      cachedInputTokens: tokens,
      cacheWrite5mTokens: tokens,
      cacheWrite1hTokens: tokens,
      outputTokens: tokens,
      reasoningTokens: tokens,
    }),
  }),
}).map(({ id, startedAt, changes }) =>
  row(`r${id}`, { ...changes, startedAt, usage: { ...NOTHING_USED, ...changes.usage } }) as LedgerRow)

/** Events of a ledger to which two processes write, in any order. */
const isOther = fc.nat(3).map(n => n === 0)
const events = fc.array(fc.oneof(
  fc.record({ what: fc.constant('ended' as const), isOther, rows: fc.array(rows, { maxLength: 20 }) }),
  fc.record({ what: fc.constant('began' as const), rows: fc.array(rows, { maxLength: 4 }) }),
  fc.record({ what: fc.constant('summed' as const), isOther }),
  fc.constant({ what: 'died' as const }),
), { maxLength: 25 })

const identity = ({ requestId, startedAt }: LedgerRow) => `${startedAt} ${requestId}`

t.test('property: stored sums equal the sums of the rows, also with replaced and interrupted rows', async t => {
  const directory = t.testdir()
  let file = 0
  const property = fc.property(events, all => {
    file += 1
    const path = join(directory, `${file}.db`)
    const ended = new Map<string, LedgerRow>()
    let running = new Map<string, LedgerRow>()
    let store = new LedgerStore(path, '0')
    const other = new LedgerStore(path, 'other')
    const by = ({ isOther }: { readonly isOther: boolean }) => (isOther ? other : store)
    let seq = 0
    all.forEach((event, n) => {
      switch (event.what) {
        case 'ended':
          by(event).write({ seq: seq += 1, drafts: [], closed: event.rows.map(encode) })
          for (const one of event.rows) {
            ended.set(identity(one), one)
            running.delete(identity(one))
          }
          break
        case 'began':
          store.write({ seq: seq += 1, drafts: event.rows.map(encode), closed: [] })
          for (const one of event.rows) running.set(identity(one), one)
          break
        case 'summed':
          by(event).sum()
          break
        case 'died':
          // The next process writes the rows of the requests that were running.
          store.abandon()
          store = new LedgerStore(path, String(n + 1))
          store.recover()
          for (const [id, one] of running) {
            if (!ended.has(id)) ended.set(id, one)
          }
          running = new Map()
      }
    })
    store.sum()
    store.abandon()
    other.abandon()
    check(path, [...ended.values()])
    for (const part of ['', '-wal', '-shm']) rmSync(path + part, { force: true })
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 60 }))
})

t.test('rows of several batches are summed', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const many = Array.from({ length: 11_000 }, (_, n) =>
    row(`r${n}`, { startedAt: MIDNIGHT + n * 20_000, key: `key-${n}`, costPico: BigInt(n) }))
  store.write({ seq: 1, drafts: [], closed: many.map(encode) })
  let pieces = 1
  while (store.sum()) pieces += 1
  t.ok(pieces > 1)
  t.equal(store.sum(), false)
  store.close()
  t.doesNotThrow(() => check(file, many))
})

t.test('a row is summed once, whether or not it is read again from the file', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const stores = [new LedgerStore(file, 'one'), new LedgerStore(file, 'two')] as const
  const all = Array.from({ length: 60 }, (_, n) =>
    row(`r${n}`, { startedAt: MIDNIGHT + n, key: `key-${n % 3}`, costPico: 2n ** 62n + BigInt(n) }))
  const write = (by: 0 | 1, from: number, to: number) =>
    stores[by].write({ seq: to, drafts: [], closed: all.slice(from, to).map(encode) })
  const summed = (to: number) => t.doesNotThrow(() => check(file, all.slice(0, to)))
  write(0, 0, 10)
  write(0, 10, 20)
  stores[0].sum()
  summed(20)
  // Rows of another process before and after these rows, and sums of another process.
  write(1, 20, 25)
  write(0, 25, 35)
  stores[0].sum()
  summed(35)
  write(0, 35, 45)
  write(1, 45, 46)
  stores[0].sum()
  summed(46)
  write(0, 46, 55)
  stores[1].sum()
  write(0, 55, 60)
  stores[0].sum()
  summed(60)
  for (const store of stores) store.close()
})

t.test('replaced and refused rows are not summed', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const stores = [new LedgerStore(file, 'one'), new LedgerStore(file, 'two')] as const
  const one = (name: string, costPico = 1n) => row(name, { costPico })
  const write = (by: 0 | 1, ...rows: LedgerRow[]) =>
    stores[by].write({ seq: 1, drafts: [], closed: rows.map(encode) })
  write(0, one('a'), one('b'))
  write(0, one('b', 2n))
  stores[0].sum()
  t.doesNotThrow(() => check(file, [one('a'), one('b', 2n)]), 'later')
  write(0, one('c'), one('c', 2n), one('d'))
  stores[0].sum()
  const all = [one('a'), one('b', 2n), one('c', 2n), one('d')]
  t.doesNotThrow(() => check(file, all), 'in the same batch')
  write(1, one('e', 5n))
  write(0, one('f'), row('g', UNBINDABLE), one('h'))
  stores[0].sum()
  t.doesNotThrow(() => check(file, [...all, one('e', 5n), one('f'), one('h')]), 'refused')
  for (const store of stores) store.close()
})

t.test('rows with a reused row id are summed', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const stores = [new LedgerStore(file, 'one'), new LedgerStore(file, 'two')] as const
  const all = Array.from({ length: 4 }, (_, n) => row(`r${n}`, { startedAt: MIDNIGHT + n, key: `key-${n}` }))
  stores[0].write({ seq: 1, drafts: [], closed: all.slice(0, 2).map(encode) })
  stores[1].sum()
  stores[1].expire(MIDNIGHT + 2, MIDNIGHT)
  stores[1].write({ seq: 1, drafts: [], closed: all.slice(2).map(encode) })
  stores[0].sum()
  for (const store of stores) store.close()
  t.doesNotThrow(() => check(file, all))
})

t.test('several processes can sum rows', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const stores = [new LedgerStore(file, 'one'), new LedgerStore(file, 'two')]
  const all: LedgerRow[] = []
  for (let n = 0; n < 40; n += 1) {
    const one = row(`r${n}`, { startedAt: MIDNIGHT + n, costPico: BigInt(n) })
    all.push(one)
    stores[n % 2]?.write({ seq: n, drafts: [], closed: [encode(one)] })
    if (n % 3 === 0) stores[n % 2]?.sum()
    if (n % 5 === 0) stores[(n + 1) % 2]?.sum()
  }
  stores[0]?.sum()
  for (const store of stores) store.close()
  t.doesNotThrow(() => check(file, all))
})

t.test('sums by day stay when rows are deleted, and new rows with reused row ids are summed', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const old = Array.from({ length: 30 }, (_, n) => row(`old${n}`, { startedAt: MIDNIGHT + n, costPico: 5n }))
  store.write({ seq: 1, drafts: [], closed: old.map(encode) })
  store.sum()
  store.expire(MIDNIGHT + HOUR, MIDNIGHT + DAY)
  const next = Array.from({ length: 3 }, (_, n) =>
    row(`new${n}`, { startedAt: MIDNIGHT + HOUR + n, costPico: 7n }))
  store.write({ seq: 2, drafts: [], closed: next.map(encode) })
  store.sum()
  store.close()
  t.doesNotThrow(() => check(file, [...old, ...next]))
  using db = new DatabaseSync(file)
  t.strictSame(db.prepare('SELECT request_id AS id FROM requests ORDER BY id').all().map(({ id }) => id), [
    'new0', 'new1', 'new2',
  ])
})

t.test('sums by hour are kept for a quarter, then their first-byte times are moved to the sums by day', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const all = [0, 1, 1, 25, 26].map((hour, n) =>
    row(`r${n}`, { startedAt: MIDNIGHT + hour * HOUR, firstByteMs: 100 * hour + 50 }))
  store.write({ seq: 1, drafts: [], closed: all.map(encode) })
  store.sum()
  using db = new DatabaseSync(file)
  const hours = () => db.prepare('SELECT hour FROM hours ORDER BY hour').all()
    .map(({ hour }) => Number(hour) - MIDNIGHT / HOUR)
  t.equal(store.expire(null, MIDNIGHT + 92 * DAY + 23 * HOUR), false, 'the hours of a day are deleted when all of them are too old')
  t.strictSame(hours(), [0, 1, 25, 26])
  while (store.expire(null, MIDNIGHT + 93 * DAY));
  t.strictSame(hours(), [25, 26])
  const days = db.prepare('SELECT day, counts FROM first_byte_days WHERE scope = 0').all()
  t.strictSame(days.map(({ day, counts }) => [Number(day) * DAY - MIDNIGHT, JSON.parse(String(counts))]), [
    [0, { [bucketOf(50)]: 1, [bucketOf(150)]: 2 }],
  ])
  const earliest = db.prepare('SELECT min(hour) AS hour FROM first_byte_hours').get()
  t.strictSame(earliest?.['hour'], MIDNIGHT / HOUR + 25)
  t.equal(db.prepare('SELECT sum(requests) AS n FROM days').get()?.['n'], 5, 'sums by day stay')
  store.close()
})
