import { Schema } from '../../base/files/sqlite-schema.ts'
import { DETAILED_SCHEMA, ROLLUP_SCHEMA, TAKEN_BACK_SCHEMA } from '../sums/rollups.ts'

/** PRAGMA application_id of a ledger: the letters GWLG. */
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

/** SQL condition for requests that are not complete with status 200. A query must contain exactly this text to use the index. */
export const UNUSUAL = `(status IS NOT 200 OR "end" <> 'complete')`

/* Two indexes with all searched columns, so that a search reads only matching rows. One index for each column would slow down writing. */
const ROWS_2 = `
  ALTER TABLE requests ADD COLUMN route TEXT;
  ALTER TABLE in_flight ADD COLUMN route TEXT;
  DROP INDEX requests_by_time;
  DROP INDEX requests_by_key;
  DROP INDEX requests_by_model;
  CREATE INDEX requests_by_time ON requests (started_at, key, model, upstream, status, "end");
  CREATE INDEX requests_unusual ON requests (started_at, key, model, upstream, status, "end")
    WHERE ${UNUSUAL};`

const ROWS_3 = `
  ALTER TABLE requests ADD COLUMN trace_id TEXT;
  ALTER TABLE in_flight ADD COLUMN trace_id TEXT;`

const ROWS_6 = `
  ALTER TABLE requests ADD COLUMN "group" TEXT;
  ALTER TABLE requests ADD COLUMN owner TEXT;
  ALTER TABLE in_flight ADD COLUMN "group" TEXT;
  ALTER TABLE in_flight ADD COLUMN owner TEXT;`

const ROWS_10 = `
  ALTER TABLE requests ADD COLUMN user TEXT;
  ALTER TABLE requests ADD COLUMN tags TEXT;
  ALTER TABLE requests ADD COLUMN billed TEXT;
  ALTER TABLE in_flight ADD COLUMN user TEXT;
  ALTER TABLE in_flight ADD COLUMN tags TEXT;
  ALTER TABLE in_flight ADD COLUMN billed TEXT;`

const ROWS_11 = `
  ALTER TABLE requests ADD COLUMN queued_ms REAL;
  ALTER TABLE in_flight ADD COLUMN queued_ms REAL;`

const ROWS_12 = `
  ALTER TABLE requests ADD COLUMN policy TEXT;
  ALTER TABLE in_flight ADD COLUMN policy TEXT;`

/**
 * `requests`: one row for each ended request. `in_flight`: checkpoints of running requests, in case the process dies. They are in a
 * separate, small table, so that a request needs only one insertion into the large table and its indexes.
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
  ROWS_3,
  // The id of this file as a journal of a cluster, and the id of the last row that PostgreSQL has.
  `CREATE TABLE journal (id TEXT NOT NULL, shipped_to INTEGER NOT NULL) STRICT;
  INSERT INTO journal VALUES (lower(hex(randomblob(16))), 0);`,
  // The ids of rows that PostgreSQL has refused, which are only in this file.
  'CREATE TABLE refused (id INTEGER PRIMARY KEY) STRICT;',
  ROWS_6,
  `ALTER TABLE requests ADD COLUMN upstream_protocol TEXT;
  ALTER TABLE in_flight ADD COLUMN upstream_protocol TEXT;`,
  DETAILED_SCHEMA,
  TAKEN_BACK_SCHEMA,
  ROWS_10,
  ROWS_11,
  ROWS_12,
]

/** @param scripts migration scripts, one for each version of the schema */
export function ledgerSchema(scripts: readonly string[] = MIGRATIONS): Schema {
  return new Schema({ id: APPLICATION_ID, scripts })
}
