import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AUDIT_SCHEMA } from '../../auth/audit.ts'
import { makeDirectory } from '../../base/files/directory.ts'
import { createPrivateFile } from '../../base/files/private-file.ts'
import { isForeign, readFileId, transaction, writeFileId } from '../../base/files/sqlite-schema.ts'
import { CIRCUIT_SCHEMA } from './circuit-history.ts'
import { RELOAD_SCHEMA } from './reload-history.ts'

/** Value of PRAGMA application_id: the letters GWCN. */
const APPLICATION_ID = 0x4757434e
/** Value of PRAGMA user_version. A file of another version is emptied, because its content is needed only for a short time. */
const VERSION = 2
/** Maximum ms to wait for another process. */
const BUSY_TIMEOUT = 5_000

const SCHEMA = `
  CREATE TABLE sessions (
    digest BLOB PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    credential TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_age ON sessions (seen_at);
  CREATE TABLE attempts (
    subject TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    until INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX attempts_by_age ON attempts (at);
  CREATE TABLE snapshots (
    worker INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    data TEXT NOT NULL
  ) STRICT;
  CREATE TABLE secret (bytes BLOB NOT NULL) STRICT;`

/** @param file null = in memory, only for this process @throws the error of node:sqlite; an error if the file belongs to another program */
export function openConsoleFile(file: string | null): DatabaseSync {
  if (file !== null) {
    makeDirectory(dirname(file))
    createPrivateFile(file)
  }
  const db = new DatabaseSync(file ?? ':memory:', { timeout: BUSY_TIMEOUT })
  try {
    // A commit does not wait for the disk. After a power failure, users may have to log in again.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    prepare(db, file)
    db.exec(CIRCUIT_SCHEMA + RELOAD_SCHEMA)
  } catch (error) {
    db.close()
    throw error
  }
  return db
}

function prepare(db: DatabaseSync, file: string | null): void {
  transaction(db, () => {
    const { id, version } = readFileId(db)
    if (id === APPLICATION_ID && version === VERSION) return
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all()
    if (isForeign(db, APPLICATION_ID)) throw new Error(`${file} is a database of another program`)
    for (const { name } of tables) db.exec(`DROP TABLE "${String(name)}"`)
    // A key store has its own table of audit events.
    db.exec(file === null ? SCHEMA + AUDIT_SCHEMA : SCHEMA)
    db.prepare('INSERT INTO secret VALUES (?)').run(randomBytes(32))
    writeFileId(db, { id: APPLICATION_ID, version: VERSION })
  })
}
