/** Columns of both tables. */
const COLUMNS = `request_id TEXT NOT NULL, started_at INTEGER NOT NULL, first_byte_ms REAL, duration_ms REAL,
    key TEXT, protocol TEXT, endpoint TEXT, model TEXT, upstream TEXT, upstream_model TEXT,
    status INTEGER, "end" TEXT NOT NULL, error TEXT, source TEXT NOT NULL,
    input_tokens INTEGER, cached_input_tokens INTEGER, cache_write_5m_tokens INTEGER,
    cache_write_1h_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER,
    input_audio_tokens INTEGER, output_audio_tokens INTEGER, input_image_tokens INTEGER,
    output_image_tokens INTEGER, seconds REAL, characters INTEGER, images INTEGER,
    cost_pico_usd INTEGER, price TEXT, price_version TEXT, attempts TEXT,
    bytes_in INTEGER, bytes_out INTEGER`

/** As version 1 wrote it; never to be changed. */
export const VERSION_1 = `
  CREATE TABLE requests (id INTEGER PRIMARY KEY,
    ${COLUMNS}) STRICT;
  CREATE UNIQUE INDEX requests_by_id ON requests (request_id, started_at);
  CREATE INDEX requests_by_time ON requests (started_at);
  CREATE INDEX requests_by_key ON requests (key, started_at);
  CREATE INDEX requests_by_model ON requests (model, started_at);
  CREATE TABLE in_flight (instance TEXT NOT NULL,
    ${COLUMNS}, PRIMARY KEY (request_id, started_at)) STRICT, WITHOUT ROWID;
  PRAGMA user_version = 1;
  PRAGMA application_id = 0x47574c47;
  INSERT INTO requests (request_id, started_at, "end", source, key, input_tokens, cost_pico_usd)
    VALUES ('old', 1700000000000, 'complete', 'reported', 'team-a', 7, 9007199254740993);
  INSERT INTO in_flight (instance, request_id, started_at, "end", source)
    VALUES ('dead', 'cut', 1700000000001, 'interrupted', 'estimated');`
