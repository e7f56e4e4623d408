import type { DatabaseSync } from 'node:sqlite'
import { StoreError } from './store-error.ts'

interface SqliteFileId {
  /** The program of the file (PRAGMA application_id); 0 = none. */
  readonly id: number
  /** Version of the schema (PRAGMA user_version); 0 = no schema yet. */
  readonly version: number
}

export function readFileId(db: DatabaseSync): SqliteFileId {
  return { id: pragma(db, 'application_id'), version: pragma(db, 'user_version') }
}

export function writeFileId(db: DatabaseSync, { id, version }: SqliteFileId): void {
  db.exec(`PRAGMA application_id = ${id}; PRAGMA user_version = ${version}`)
}

/** Does the file belong to another program? An empty file belongs to none. */
export function isForeign(db: DatabaseSync, ours: number): boolean {
  const { id, version } = readFileId(db)
  if (id === ours) return false
  return id !== 0 || version !== 0 || db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n'] !== 0
}

/** Runs `work` as one transaction and returns its result. Waits while another process writes. @throws errors of `work` or node:sqlite */
export function transaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    // SQLite itself rolls back after some errors.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function pragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  const value = db.prepare(`PRAGMA ${name}`).get()?.[name]
  return typeof value === 'number' ? value : 0
}

interface SchemaOptions {
  /** Marks the file (PRAGMA application_id). */
  readonly id: number
  /** One script for each version, from version 1. Never change a released script: add one. */
  readonly scripts: readonly string[]
}

/** The schema of a kind of SQLite file, which grows from version to version. */
export class Schema {
  readonly #options: SchemaOptions

  constructor(options: SchemaOptions) {
    this.#options = options
  }

  get latest(): number {
    return this.#options.scripts.length
  }

  /** Reads the schema version of a file; 0 = none yet. @throws {StoreError} `foreign`, `newer` */
  versionOf(db: DatabaseSync): number {
    if (isForeign(db, this.#options.id)) throw new StoreError('foreign', 'the file is a database of another program')
    const { version } = readFileId(db)
    if (version > this.latest) {
      throw new StoreError('newer', `the file has schema version ${version}, written by a newer gateway; ` +
        `this one knows versions up to ${this.latest}`)
    }
    return version
  }

  /** Migrates in one transaction; several processes can try at once. @throws {StoreError} `foreign`, `newer`; or node:sqlite's error */
  migrate(db: DatabaseSync): void {
    if (this.versionOf(db) === this.latest) return
    const { id, scripts } = this.#options
    transaction(db, () => {
      // Another process may have migrated the file before this one got the lock.
      for (const script of scripts.slice(this.versionOf(db))) db.exec(script)
      writeFileId(db, { id, version: this.latest })
    })
  }
}
