import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { encode } from '../../../src/ledger/columns.ts'
import { compactLedger } from '../../../src/ledger/file/compact.ts'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { gateway } from '../../cli/command.ts'
import { MIDNIGHT, row } from '../rows.ts'

const DAY = 86_400_000

/** Writes rows of two days, most of them of the first day. */
function filled(file: string): LedgerStore {
  const store = new LedgerStore(file, 'test')
  for (let n = 0; n < 20; n++) {
    const closed = Array.from({ length: 500 }, (_, at) => encode(row(`r${n}-${at}`, { startedAt: at === 0 ? MIDNIGHT + DAY : MIDNIGHT, route: 'x'.repeat(900) })))
    store.write({ seq: n + 1, drafts: [], closed })
  }
  while (store.sum());
  return store
}

function expire(store: LedgerStore): void {
  while (store.expire(MIDNIGHT + 1, MIDNIGHT));
}

/** @returns the size of the file after its WAL is written into it, bytes */
function sizeOf(file: string): number {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  return statSync(file).size
}

t.test('vacuum makes the file smaller in steps after rows are deleted, and keeps some free space', async t => {
  const file = join(t.testdir({}), 'ledger.db')
  const store = filled(file)
  const full = sizeOf(file)
  expire(store)
  let steps = 0
  while (store.vacuum()) steps++
  t.ok(steps > 3, `${steps} steps`)
  t.equal(store.vacuum(), false)
  store.close()
  t.ok(sizeOf(file) < full / 3)
  using reader = openReader(file)
  t.equal([...reader.rows({})].length, 20)
  t.equal(reader.sums({}, [])[0]?.requests, 10_000)
})

t.test('a file of an older version is compacted once, while a gateway has the file open', async t => {
  const file = join(t.testdir({}), 'ledger.db')
  filled(file).close()
  const older = new DatabaseSync(file)
  older.exec('PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM; PRAGMA journal_mode = WAL')
  older.close()
  const store = new LedgerStore(file, 'test')
  const full = sizeOf(file)
  expire(store)
  t.equal(store.vacuum(), false)
  t.equal(sizeOf(file), full)
  const { before, after } = compactLedger(file)
  t.equal(before, full)
  t.ok(after < full / 3)
  t.equal(statSync(file).size, after)
  store.write({ seq: 100, drafts: [], closed: [encode(row('later', { startedAt: MIDNIGHT + DAY }))] })
  store.close()
  const db = new DatabaseSync(file, { readOnly: true })
  t.strictSame({ ...db.prepare('PRAGMA auto_vacuum').get() }, { auto_vacuum: 2 })
  db.close()
  using reader = openReader(file)
  t.equal([...reader.rows({})].length, 21)
})

t.test('gateway ledger compact reports the sizes before and after, or an error', { timeout: 60_000 }, async t => {
  const yaml = 'upstreams: { sim: { simulator: true } }\nroutes: [{ to: sim }]\n'
  const cwd = t.testdir({ 'gateway.yaml': `${yaml}ledger: { file: ledger.db }\n`, 'none.yaml': yaml, 'other.db': 'no database' })
  t.match(await gateway(['ledger', 'compact'], { cwd }), { code: 1, stderr: /ledger\.db: there is no such file/ })
  t.match(await gateway(['ledger', 'compact', '-c', 'none.yaml'], { cwd }), { code: 2, stderr: /has no ledger/ })
  filled(join(cwd, 'ledger.db')).close()
  t.match(await gateway(['ledger', 'compact'], { cwd }), { code: 0, stdout: /^Compacted \S+ledger\.db: [\d ,]+ bytes before, [\d ,]+ after\.\n$/ })
})
