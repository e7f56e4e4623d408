import { deepStrictEqual } from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t from 'tap'
import { COLUMN_LIST, COLUMNS, decode, encode, READ_LIST } from '../../src/ledger/columns.ts'
import { ledgerSchema } from '../../src/ledger/file/ledger-schema.ts'
import type { LedgerRow } from '../../src/ledger/row.ts'
import type { Usage } from '../../src/protocols/usage/usage.ts'
import { maybe } from '../support/maybe.ts'
import { NOTHING_USED, row } from './rows.ts'

const db = new DatabaseSync(':memory:')
ledgerSchema().migrate(db)
const marks = COLUMNS.map(() => '?').join(', ')
const insert = db.prepare(`INSERT INTO requests (${COLUMN_LIST}) VALUES (${marks})`)
const select = db.prepare(`SELECT ${READ_LIST} FROM requests`)

function stored(one: LedgerRow): LedgerRow {
  db.exec('DELETE FROM requests')
  insert.run(...encode(one))
  return decode(select.get() ?? {})
}

const name = fc.string({ unit: 'grapheme', maxLength: 60 }).map(text => text.slice(0, 256))
const count = fc.nat(Number.MAX_SAFE_INTEGER)
const ms = fc.nat(10_000_000).map(n => n / 1000)
const decimal = fc.nat(1_000_000).map(n => String(n / 100))
const counts = Object.fromEntries(Object.keys(NOTHING_USED).map(key => [key, maybe(count)])) as
  Record<keyof Usage, fc.Arbitrary<number | null>>

const rows: fc.Arbitrary<LedgerRow> = fc.record({
  requestId: name,
  startedAt: fc.nat(8.64e15),
  firstByteMs: maybe(ms),
  durationMs: maybe(ms),
  key: maybe(name),
  protocol: maybe(fc.constantFrom('chat', 'messages', 'generate')),
  endpoint: maybe(fc.constantFrom('chat.completions', 'messages', 'other')),
  model: maybe(name),
  upstream: maybe(name),
  upstreamModel: maybe(name),
  attempts: fc.array(fc.record(
    { upstream: name, model: maybe(name), outcome: name, ms, atMs: ms, status: fc.nat(599) },
    { requiredKeys: ['upstream', 'model', 'outcome', 'ms'], noNullPrototype: true },
  ), { maxLength: 5 }),
  status: maybe(fc.nat(599)),
  end: fc.constantFrom('complete', 'client_gone', 'interrupted'),
  error: maybe(name),
  usage: fc.record<Usage>({ ...counts, seconds: maybe(ms) }, { noNullPrototype: true }),
  source: fc.constantFrom('reported', 'estimated', 'mixed', 'none'),
  costPico: maybe(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n })),
  price: maybe(fc.record({ input: decimal, output: decimal }, { noNullPrototype: true })),
  priceVersion: maybe(name),
  bytesIn: count,
  bytesOut: count,
  route: maybe(name),
  traceId: maybe(name),
  group: maybe(name),
  owner: maybe(name),
  upstreamProtocol: maybe(name),
  user: maybe(name),
  tags: maybe(fc.dictionary(name.filter(text => text !== '__proto__'), name, { maxKeys: 5, noNullPrototype: true })),
  billed: maybe(fc.constant('client')),
}, { noNullPrototype: true })

t.test('every row is read back as it was stored, costs and large counts to the last digit', async t => {
  const same = fc.property(rows, one => deepStrictEqual(stored(one), one))
  t.doesNotThrow(() => fc.assert(same, { numRuns: 300 }))
})

t.test('an explicit zero and an unknown value stay different', async t => {
  const usage = { ...NOTHING_USED, inputTokens: 0, outputTokens: null }
  const zeros = row('a', { usage, costPico: 0n, status: 0 })
  t.strictSame(stored(zeros), zeros)
  t.equal(stored(row('a', { costPico: null })).costPico, null)
})

t.test('tags are stored sorted, and malformed tags are reported as unreadable', async t => {
  t.equal(encode(row('a', { tags: { project: 'alpha', env: 'prod' } }))[COLUMNS.indexOf('tags')], '{"env":"prod","project":"alpha"}')
  stored(row('a'))
  for (const broken of ['{"project":', '{"project":1}', '[]']) {
    db.prepare('UPDATE requests SET tags = ?').run(broken)
    t.match(decode(select.get() ?? {}), { tags: null, unreadable: ['tags'] })
  }
})

t.test('an invalid count is stored as unknown, and its row is kept', async t => {
  const nonsense = { inputTokens: 1.5, outputTokens: NaN, reasoningTokens: 1e300, seconds: Infinity }
  const usage = { ...NOTHING_USED, ...nonsense }
  t.strictSame(stored(row('a', { usage, durationMs: NaN })).usage, NOTHING_USED)
})

t.test('a cost above nine million USD is stored as unknown, and its row is kept', async t => {
  t.equal(stored(row('a', { costPico: 2n ** 63n })).costPico, null)
})

t.test('times are rounded to a thousandth of a millisecond', async t => {
  t.equal(stored(row('a', { durationMs: 1234.567891 })).durationMs, 1234.568)
})

t.test('at most a hundred attempts are stored', async t => {
  const [attempt] = row('a').attempts
  if (attempt === undefined) throw new Error('the fixture has one')
  t.equal(stored(row('a', { attempts: Array.from({ length: 1000 }, () => attempt) })).attempts.length, 100)
})
