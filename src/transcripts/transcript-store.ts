import { dirname } from 'node:path'
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import { makeDirectory } from '../base/files/directory.ts'
import { createPrivateFile } from '../base/files/private-file.ts'
import { Schema } from '../base/files/sqlite-schema.ts'
import type { CapturedBody, Transcript } from './transcript.ts'

/** Marks a SQLite file of transcripts (PRAGMA application_id): the letters GWTR. */
const APPLICATION_ID = 0x47575452
/** Milliseconds that a statement waits for another process. */
const BUSY_TIMEOUT_MS = 2_000
/** Maximum rows that are deleted in one transaction. */
const SWEEP_BATCH = 500

const SCHEMA = new Schema({
  id: APPLICATION_ID,
  scripts: [`
    CREATE TABLE transcripts (
      request_id TEXT NOT NULL, started_at INTEGER NOT NULL, key TEXT NOT NULL, expires_at INTEGER NOT NULL,
      request_type TEXT, request BLOB NOT NULL, request_total INTEGER NOT NULL,
      answer_type TEXT, answer BLOB NOT NULL, answer_total INTEGER NOT NULL,
      PRIMARY KEY (request_id, started_at)
    ) STRICT;
    CREATE INDEX transcripts_by_end ON transcripts (expires_at)`],
})

type StoredRow = Readonly<Record<string, SQLOutputValue>>

/** The file with the transcripts. Only its owner can read it. Deleted data is overwritten. All calls block. */
export class TranscriptStore {
  readonly #db: DatabaseSync
  readonly #insert: StatementSync
  readonly #find: StatementSync
  readonly #expire: StatementSync
  readonly #count: StatementSync

  /** Opens or creates the file. @throws Error if the file is another program's database; errors of node:fs and node:sqlite */
  constructor(file: string) {
    makeDirectory(dirname(file))
    createPrivateFile(file)
    this.#db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
    try {
      // Check first, because the PRAGMAs would change the file of another program.
      SCHEMA.versionOf(this.#db)
      // auto_vacuum has an effect only before the first table is created.
      this.#db.exec(`PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
        PRAGMA secure_delete = ON`)
      SCHEMA.migrate(this.#db)
      this.#insert = this.#db.prepare(`INSERT OR REPLACE INTO transcripts VALUES (${'?, '.repeat(9)}?)`)
      this.#find = this.#db.prepare(
        'SELECT * FROM transcripts WHERE request_id = ? AND expires_at > ? ORDER BY started_at')
      this.#expire = this.#db.prepare(`DELETE FROM transcripts WHERE rowid IN
        (SELECT rowid FROM transcripts WHERE expires_at <= ? LIMIT ${SWEEP_BATCH})`)
      this.#count = this.#db.prepare('SELECT count(*) AS n FROM transcripts')
    } catch (error) {
      this.#db.close()
      throw error
    }
  }

  /** Adds a transcript. Replaces an earlier transcript of the same request. */
  add({ requestId, startedAt, key, expiresAt, request, response }: Transcript): void {
    this.#insert.run(requestId, startedAt, key, expiresAt, ...bodyValues(request), ...bodyValues(response))
  }

  /** @param now ms since 1970 */
  find(requestId: string, now: number): Transcript[] {
    return this.#find.all(requestId, now).map(stored => ({
      requestId,
      startedAt: Number(stored['started_at']),
      key: String(stored['key']),
      expiresAt: Number(stored['expires_at']),
      request: readBody(stored, 'request'),
      response: readBody(stored, 'answer'),
    }))
  }

  /** Deletes some expired transcripts. @param now ms since 1970 @returns true = there may be more */
  expire(now: number): boolean {
    const more = Number(this.#expire.run(now).changes) === SWEEP_BATCH
    if (!more) this.#db.exec('PRAGMA incremental_vacuum')
    return more
  }

  count(): number {
    return Number(this.#count.get()?.['n'])
  }

  close(): void {
    this.#db.close()
  }
}

function bodyValues({ contentType, bytes, total }: CapturedBody) {
  return [contentType, bytes, total] as const
}

function readBody(stored: StoredRow, name: 'request' | 'answer'): CapturedBody {
  const type = stored[`${name}_type`]
  return {
    contentType: typeof type === 'string' ? type : null,
    bytes: stored[name] as Uint8Array,
    total: Number(stored[`${name}_total`]),
  }
}
