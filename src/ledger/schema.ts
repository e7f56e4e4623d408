import type { DatabaseSync } from 'node:sqlite'
import { ROLLUP_SCHEMA } from './rollups.ts'
import { LedgerError } from './trouble.ts'

/** Marks a SQLite file as a ledger (PRAGMA application_id): the letters GWLG. */
const APPLICATION_ID = 0x47574c47

const ROW = `
  request_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  first_byte_ms REAL,
  duration_ms REAL,
  key TEXT,
  protocol TEXT,
  endpoint TEXT,
  model TEXT,
  upstream TEXT,
  upstream_model TEXT,
  status INTEGER,
  "end" TEXT NOT NULL,
  error TEXT,
  source TEXT NOT NULL,
  input_tokens INTEGER,
  cached_input_tokens INTEGER,
  cache_write_5m_tokens INTEGER,
  cache_write_1h_tokens INTEGER,
  output_tokens INTEGER,
  reasoning_tokens INTEGER,
  input_audio_tokens INTEGER,
  output_audio_tokens INTEGER,
  input_image_tokens INTEGER,
  output_image_tokens INTEGER,
  seconds REAL,
  characters INTEGER,
  images INTEGER,
  cost_pico_usd INTEGER,
  price TEXT,
  price_version TEXT,
  attempts TEXT,
  bytes_in INTEGER,
  bytes_out INTEGER`

/** Requests that are not what most are; to be repeated as it is by a query that uses the index. */
export const UNUSUAL = `(status IS NOT 200 OR "end" <> 'complete')`

/*
 * Two indices hold all that requests are chosen by, so that a search reads no
 * rows but those it finds; they cost the writer less than one for each column
 * would, because new entries come at their end.
 */
const ROWS_2 = `
  ALTER TABLE requests ADD COLUMN route TEXT;
  ALTER TABLE in_flight ADD COLUMN route TEXT;
  DROP INDEX requests_by_time;
  DROP INDEX requests_by_key;
  DROP INDEX requests_by_model;
  CREATE INDEX requests_by_time ON requests (started_at, key, model, upstream, status, "end");
  CREATE INDEX requests_unusual ON requests (started_at, key, model, upstream, status, "end")
    WHERE ${UNUSUAL};`

/**
 * One script a version, the first at index 0; PRAGMA user_version counts those
 * that ran. A script that was released is never edited: what changes is added.
 *
 * `requests` holds what has ended, one row a request. `in_flight` holds how each
 * running request would be billed if its process died now; it stays small, so
 * that a request costs one insertion into the large table and its indices.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE requests (id INTEGER PRIMARY KEY, ${ROW}
  ) STRICT;
  CREATE UNIQUE INDEX requests_by_id ON requests (request_id, started_at);
  CREATE INDEX requests_by_time ON requests (started_at);
  CREATE INDEX requests_by_key ON requests (key, started_at);
  CREATE INDEX requests_by_model ON requests (model, started_at);
  CREATE TABLE in_flight (instance TEXT NOT NULL, ${ROW},
    PRIMARY KEY (request_id, started_at)
  ) STRICT, WITHOUT ROWID;`,
  ROWS_2 + ROLLUP_SCHEMA,
]

function pragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  const value = db.prepare(`PRAGMA ${name}`).get()?.[name]
  return typeof value === 'number' ? value : 0
}

/**
 * Says whether a file is a ledger that this version can read and write, without
 * changing it.
 * @param migrations as for migrate
 * @returns the version of its schema; 0 where the file is empty
 * @throws {LedgerError} `foreign` for another program's database, `newer` for a
 *   ledger of a later version
 */
export function schemaVersion(db: DatabaseSync, migrations: readonly string[] = MIGRATIONS): number {
  const id = pragma(db, 'application_id')
  const version = pragma(db, 'user_version')
  if (id !== APPLICATION_ID) {
    const tables = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n']
    if (id !== 0 || version !== 0 || tables !== 0) {
      throw new LedgerError('foreign', 'the file is a database of another program')
    }
  }
  if (version > migrations.length) {
    throw new LedgerError('newer', `the file has schema version ${version}, written by a newer gateway; ` +
      `this one knows versions up to ${migrations.length}`)
  }
  return version
}

/**
 * Brings a ledger to the latest schema, all of it or nothing. Several processes
 * may try at once.
 * @param migrations the scripts of all versions
 * @throws {LedgerError} as schemaVersion
 */
export function migrate(db: DatabaseSync, migrations: readonly string[] = MIGRATIONS): void {
  if (schemaVersion(db, migrations) === migrations.length) return
  db.exec('BEGIN IMMEDIATE')
  try {
    // Again, behind the lock: another process may have been faster.
    for (let version = schemaVersion(db, migrations); version < migrations.length; version += 1) {
      db.exec(migrations[version] ?? '')
      db.exec(`PRAGMA user_version = ${version + 1}`)
    }
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
