import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { openReader } from '../../src/ledger/query.ts'
import { MIGRATIONS, migrate, schemaVersion } from '../../src/ledger/schema.ts'
import { row } from './rows.ts'
import { watch } from './watched.ts'

/** As version 1 wrote it; never to be changed. */
const VERSION_1 = `
  CREATE TABLE requests (id INTEGER PRIMARY KEY,
    request_id TEXT NOT NULL, started_at INTEGER NOT NULL, first_byte_ms REAL, duration_ms REAL,
    key TEXT, protocol TEXT, endpoint TEXT, model TEXT, upstream TEXT, upstream_model TEXT,
    status INTEGER, "end" TEXT NOT NULL, error TEXT, source TEXT NOT NULL,
    input_tokens INTEGER, cached_input_tokens INTEGER, cache_write_5m_tokens INTEGER,
    cache_write_1h_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER,
    input_audio_tokens INTEGER, output_audio_tokens INTEGER, input_image_tokens INTEGER,
    output_image_tokens INTEGER, seconds REAL, characters INTEGER, images INTEGER,
    cost_pico_usd INTEGER, price TEXT, price_version TEXT, attempts TEXT,
    bytes_in INTEGER, bytes_out INTEGER) STRICT;
  CREATE UNIQUE INDEX requests_by_id ON requests (request_id, started_at);
  CREATE INDEX requests_by_time ON requests (started_at);
  CREATE INDEX requests_by_key ON requests (key, started_at);
  CREATE INDEX requests_by_model ON requests (model, started_at);
  CREATE TABLE in_flight (instance TEXT NOT NULL,
    request_id TEXT NOT NULL, started_at INTEGER NOT NULL, first_byte_ms REAL, duration_ms REAL,
    key TEXT, protocol TEXT, endpoint TEXT, model TEXT, upstream TEXT, upstream_model TEXT,
    status INTEGER, "end" TEXT NOT NULL, error TEXT, source TEXT NOT NULL,
    input_tokens INTEGER, cached_input_tokens INTEGER, cache_write_5m_tokens INTEGER,
    cache_write_1h_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER,
    input_audio_tokens INTEGER, output_audio_tokens INTEGER, input_image_tokens INTEGER,
    output_image_tokens INTEGER, seconds REAL, characters INTEGER, images INTEGER,
    cost_pico_usd INTEGER, price TEXT, price_version TEXT, attempts TEXT,
    bytes_in INTEGER, bytes_out INTEGER, PRIMARY KEY (request_id, started_at)) STRICT, WITHOUT ROWID;
  PRAGMA user_version = 1;
  PRAGMA application_id = 0x47574c47;
  INSERT INTO requests (request_id, started_at, "end", source, key, input_tokens, cost_pico_usd)
    VALUES ('old', 1700000000000, 'complete', 'reported', 'team-a', 7, 9007199254740993);
  INSERT INTO in_flight (instance, request_id, started_at, "end", source)
    VALUES ('dead', 'cut', 1700000000001, 'interrupted', 'estimated');`

t.test('a file of version 1 is read, continued and recovered', async t => {
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

const NEXT = [
  ...MIGRATIONS,
  `ALTER TABLE requests ADD COLUMN note TEXT; UPDATE requests SET note = 'from before'`,
]

t.test('a later version runs only what is new, once', async t => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  t.equal(schemaVersion(db), MIGRATIONS.length)
  db.exec(`INSERT INTO requests (request_id, started_at, "end", source) VALUES ('a', 1, 'complete', 'none')`)
  migrate(db, NEXT)
  t.equal(schemaVersion(db, NEXT), NEXT.length)
  t.equal(db.prepare('SELECT note FROM requests').get()?.['note'], 'from before')
  db.exec('UPDATE requests SET note = NULL')
  migrate(db, NEXT)
  t.equal(db.prepare('SELECT note FROM requests').get()?.['note'], null)
  t.throws(() => schemaVersion(db), { name: 'LedgerError', code: 'newer' })
})

t.test('a migration that fails leaves the file as it was', async t => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  const broken = [...NEXT, 'CREATE TABLE half (done TEXT); SELECT nonsense FROM nowhere']
  t.throws(() => migrate(db, broken), /nowhere/)
  t.equal(schemaVersion(db), MIGRATIONS.length)
  t.equal(db.prepare(`SELECT count(*) AS n FROM sqlite_schema WHERE name = 'half'`).get()?.['n'], 0)
  t.notOk(db.isTransaction)
})

t.test('a database of another program is recognised, and not touched', async t => {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE theirs (it TEXT)')
  t.throws(() => migrate(db), { name: 'LedgerError', code: 'foreign' })
  const marked = new DatabaseSync(':memory:')
  marked.exec('PRAGMA application_id = 42')
  t.throws(() => migrate(marked), { name: 'LedgerError', code: 'foreign' })
  t.equal(db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n'], 1)
})
