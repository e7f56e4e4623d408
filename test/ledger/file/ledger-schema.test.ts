import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { openReader } from '../../../src/ledger/read/file-reader.ts'
import { MIGRATIONS, ledgerSchema } from '../../../src/ledger/file/ledger-schema.ts'
import { LedgerStore } from '../../../src/ledger/write/ledger-store.ts'
import { row } from '../rows.ts'
import { VERSION_1 } from '../version-1.ts'
import { watch } from '../watched.ts'

t.test('a file of version 1 can be read and written, and its interrupted requests are recovered', async t => {
  const file = join(t.testdir(), 'gateway.db')
  const old = new DatabaseSync(file)
  old.exec(VERSION_1)
  old.close()
  await using watched = watch(file)
  watched.ledger.close(row('new'))
  await watched.ledger.flush()
  using reader = openReader(file)
  t.match([...reader.rows({})], [
    {
      requestId: 'old',
      key: 'team-a',
      usage: { inputTokens: 7, outputTokens: null },
      costPico: 9007199254740993n,
    },
    { requestId: 'cut', end: 'interrupted' },
    row('new'),
  ])
  t.strictSame(watched.told, [])
})

t.test('a file of version 1 gets sums, also for rows that an older process still writes', async t => {
  const file = join(t.testdir(), 'gateway.db')
  using old = new DatabaseSync(file)
  old.exec(VERSION_1)
  const insert = old.prepare(`
    INSERT OR REPLACE INTO requests (request_id, started_at, "end", source, cost_pico_usd)
    VALUES (?, 1700000000000, 'error', 'none', 3)`)
  const store = new LedgerStore(file, 'new')
  const sums = () => old.prepare(
    'SELECT sum(requests) AS n, sum(cost_high) AS high, sum(cost_low) AS low FROM days').get()
  store.sum()
  t.match(sums(), { n: 1, high: 9_007_199, low: 254_740_993 })
  insert.run('beside')
  store.sum()
  t.match(sums(), { n: 2, high: 9_007_199, low: 254_740_996 })
  store.close()
})

const NEXT = [
  ...MIGRATIONS,
  `ALTER TABLE requests ADD COLUMN note TEXT; UPDATE requests SET note = 'from before'`,
]
const schema = ledgerSchema()
const later = ledgerSchema(NEXT)

t.test('a migration runs only the new steps, and only once', async t => {
  const db = new DatabaseSync(':memory:')
  schema.migrate(db)
  t.equal(schema.versionOf(db), schema.latest)
  db.exec(`INSERT INTO requests (request_id, started_at, "end", source) VALUES ('a', 1, 'complete', 'none')`)
  later.migrate(db)
  t.equal(later.versionOf(db), later.latest)
  t.equal(db.prepare('SELECT note FROM requests').get()?.['note'], 'from before')
  db.exec('UPDATE requests SET note = NULL')
  later.migrate(db)
  t.equal(db.prepare('SELECT note FROM requests').get()?.['note'], null)
  t.throws(() => schema.versionOf(db), { name: 'StoreError', code: 'newer' })
})

t.test('a failed migration leaves the file unchanged', async t => {
  const db = new DatabaseSync(':memory:')
  schema.migrate(db)
  const broken = [...NEXT, 'CREATE TABLE half (done TEXT); SELECT nonsense FROM nowhere']
  t.throws(() => ledgerSchema(broken).migrate(db), /nowhere/)
  t.equal(schema.versionOf(db), schema.latest)
  t.equal(db.prepare(`SELECT count(*) AS n FROM sqlite_schema WHERE name = 'half'`).get()?.['n'], 0)
  t.notOk(db.isTransaction)
})

t.test('a database of another program is refused and not changed', async t => {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE theirs (it TEXT)')
  t.throws(() => schema.migrate(db), { name: 'StoreError', code: 'foreign' })
  const marked = new DatabaseSync(':memory:')
  marked.exec('PRAGMA application_id = 42')
  t.throws(() => schema.migrate(marked), { name: 'StoreError', code: 'foreign' })
  t.equal(db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n'], 1)
})
