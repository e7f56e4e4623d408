import { copyFileSync, rmSync, statSync, unwatchFile, watchFile } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { COLUMNS, encode } from '../../../src/ledger/columns.ts'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import type { LedgerRow } from '../../../src/ledger/row.ts'
import { spentSince } from '../../../src/ledger/sums/spent.ts'
import { draft, MIDNIGHT, UNBINDABLE, row } from '../rows.ts'
import { watch } from '../watched.ts'

t.test('a batch that is sent twice is written once', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const first = { seq: 1, drafts: [encode(draft('a')), encode(draft('b'))], closed: [] }
  const second = { seq: 2, drafts: [], closed: [encode(row('a'))] }
  for (const batch of [first, second, first, second]) t.equal(store.write(batch), null)
  using reader = openReader(file)
  t.strictSame([...reader.rows({})], [row('a')])
  t.strictSame(reader.find('b'), [{ row: draft('b'), running: true }])
  store.write(first)
  store.close()
  t.strictSame([...reader.rows({})], [row('a'), draft('b')], 'a late checkpoint does not replace a row')
})

t.test('after a checkpoint the database file is complete without its log', async t => {
  const dir = t.testdir()
  const file = join(dir, 'gateway.db')
  const alone = join(dir, 'alone.db')
  const store = new LedgerStore(file, 'one')
  store.write({ seq: 1, drafts: [], closed: [encode(row('a'))] })
  const other = new DatabaseSync(file)
  other.exec('BEGIN; SELECT count(*) FROM requests')
  store.write({ seq: 2, drafts: [], closed: [encode(row('b'))] })
  t.equal(store.checkpoint(), false, 'a reader prevents a complete copy')
  other.exec('COMMIT')
  other.close()
  t.equal(store.checkpoint(), true)
  copyFileSync(file, alone)
  store.close()
  using reader = openReader(alone)
  t.strictSame([...reader.rows({})], [row('a'), row('b')])
})

t.test('a batch is written as a whole or not at all', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  store.write({ seq: 1, drafts: [], closed: [encode(row('before'))] })
  const other = new DatabaseSync(file)
  // The last table that each row is written to.
  other.exec('ALTER TABLE in_flight RENAME TO elsewhere')
  const batch = { seq: 2, drafts: [], closed: [encode(row('a')), encode(row('b'))] }
  t.throws(() => store.write(batch), /no such table/)
  const select = other.prepare('SELECT request_id AS name FROM requests ORDER BY id')
  const ids = () => select.all().map(({ name }) => name)
  t.strictSame(ids(), ['before'])
  other.exec('ALTER TABLE elsewhere RENAME TO in_flight')
  t.equal(store.write(batch), null)
  t.strictSame(ids(), ['before', 'a', 'b'])
  other.close()
  store.close()
})

t.test('rows that were shipped to PostgreSQL are deleted from the file; refused rows and the sums stay', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one', true)
  t.teardown(() => store.close())
  const rows = ['a', 'refused', 'c', 'last', 'unsent'].map(name => row(name, { costPico: 1n }))
  store.write({ seq: 1, drafts: [], closed: rows.map(encode) })
  const later = MIDNIGHT + 1
  const left = () => {
    using reader = openReader(file)
    return [...reader.rows({})].map(({ requestId }) => requestId)
  }
  using db = new DatabaseSync(file)
  db.exec(`UPDATE journal SET shipped_to = 4; INSERT INTO refused SELECT id FROM requests WHERE request_id = 'refused'`)
  t.equal(store.trim(later), false)
  t.equal(left().length, 5, 'rows that are not summed are kept')
  while (store.sum());
  store.trim(MIDNIGHT)
  t.equal(left().length, 5, 'rows younger than the limit are kept')
  store.trim(later)
  t.strictSame(left(), ['refused', 'last', 'unsent'])
  t.match(spentSince(file, MIDNIGHT), [{ pico: 5n }])
  store.expire(later, later)
  t.strictSame(left(), ['last', 'unsent'], 'with ledger.keep, refused rows go too')
})

t.test('if SQLite refuses a row, the checkpoint of the request stays', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const odd = encode(row('a', UNBINDABLE))
  t.match(store.write({ seq: 1, drafts: [encode(draft('a'))], closed: [odd] }), { closed: 1, error: Error })
  store.close()
  using reader = openReader(file)
  t.strictSame([...reader.rows({})], [draft('a')])
})

t.test('a row that is refused or already stored does not affect other rows of its batch', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const names = Array.from({ length: 30 }, (_, n) => `r${n}`)
  const drafts = names.map(name => encode(draft(name)))
  store.write({ seq: 1, drafts, closed: [encode(row('r3', { bytesIn: 1 }))] })
  const closed = names.map(name => encode(row(name, name === 'r12' || name === 'r29' ? UNBINDABLE : {})))
  const unknown = encode(row('r21'))
  unknown[COLUMNS.indexOf('end')] = null
  closed[21] = unknown
  t.match(store.write({ seq: 2, drafts: [], closed }), { closed: 3, error: Error })
  using reader = openReader(file)
  const rest = names.filter(name => !['r12', 'r21', 'r29'].includes(name))
  const sorted = (rows: readonly LedgerRow[]) =>
    [...rows].sort((a, b) => (a.requestId < b.requestId ? -1 : 1))
  t.strictSame(sorted([...reader.rows({})]), sorted(rest.map(name => row(name))))
  t.equal(reader.find('r12')[0]?.running, true, 'the checkpoint of the refused row stays')
  t.equal(reader.find('r11')[0]?.running, false)
  store.close()
})

t.test('recovery ends only the running requests of dead processes, as interrupted', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const living = new LedgerStore(file, 'living')
  living.write({ seq: 1, drafts: [encode(draft('running'))], closed: [] })
  const other = new LedgerStore(file, 'other')
  other.write({ seq: 1, drafts: [encode(draft('mine'))], closed: [] })
  t.equal(other.recover().length, 0)
  // Without its lock file the process is treated as ended.
  rmSync(`${file}-live-living`)
  t.equal(other.recover().length, 1)
  using reader = openReader(file)
  t.strictSame([...reader.rows({})], [draft('running')])
  // The process was running; its row replaces the interrupted row.
  living.write({ seq: 2, drafts: [], closed: [encode(row('running'))] })
  t.strictSame([...reader.rows({})], [row('running')])
  living.close()
  other.close()
})

t.test('a running request of a killed process is recovered once, from its last checkpoint', t => {
  const file = join(t.testdir(), 'gateway.db')
  const killed = new LedgerStore(file, 'killed')
  const later = { startedAt: MIDNIGHT + 1 }
  const better = draft('a', { ...later, costPico: 9n, usage: { ...draft('a').usage, outputTokens: 40 } })
  killed.write({ seq: 1, drafts: [draft('a'), draft('a', later), draft('b')].map(encode), closed: [] })
  // A proxy may set the same id for two requests; the end of one does not end the other.
  killed.write({ seq: 2, drafts: [encode(better)], closed: [encode(row('a')), encode(row('b'))] })
  killed.abandon()
  const next = new LedgerStore(file, 'next')
  t.equal(next.recover().length, 1)
  t.equal(next.recover().length, 0)
  next.close()
  using reader = openReader(file)
  t.strictSame([...reader.rows({})], [row('a'), row('b'), better])
  t.equal(reader.sums({}, [])[0]?.requests, 3)
  t.equal(spentSince(file, MIDNIGHT)[0]?.pico, 2n * 660_000_000n + 9n)
  t.end()
})

t.test('old rows are deleted in batches', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const store = new LedgerStore(file, 'one')
  const rows = Array.from({ length: 700 }, (_, n) => encode(row(`r${n}`, { startedAt: MIDNIGHT + n })))
  store.write({ seq: 1, drafts: [], closed: rows })
  t.equal(store.expire(MIDNIGHT + 600, MIDNIGHT), false, 'rows that are not summed are kept')
  t.equal(store.sum(), false)
  t.equal(store.expire(MIDNIGHT + 600, MIDNIGHT), true)
  t.equal(store.expire(MIDNIGHT + 600, MIDNIGHT), false)
  using reader = openReader(file)
  t.equal([...reader.rows({})].length, 100)
  t.equal(reader.sums({}, [])[0]?.requests, 700, 'the sums stay')
  store.close()
})

t.test('a separate thread copies the write-ahead log into the file', async t => {
  const file = join(t.testdir(), 'gateway.db')
  await using watched = watch(file)
  const empty = statSync(await ready(file, watched)).size
  for (let n = 0; n < 2000; n += 1) watched.ledger.close(row(`r${n}`))
  // Far fewer rows than cause a checkpoint of the WAL by themselves.
  await watched.ledger.flush()
  await new Promise<void>(resolve => {
    watchFile(file, { interval: 50 }, ({ size }) => {
      if (size <= empty + 100_000) return
      unwatchFile(file)
      resolve()
    })
  })
  t.pass('it grew')
})

async function ready(file: string, { ledger }: ReturnType<typeof watch>): Promise<string> {
  await ledger.ready()
  return file
}
