import type { DatabaseSync } from 'node:sqlite'
import { StoreError } from './store-error.ts'

interface SqliteFileId {
  /** Id of the program that the file belongs to (PRAGMA application_id); 0 = none. */
  readonly id: number
  /** Version of the schema (PRAGMA user_version); 0 = the file has no schema yet. */
  readonly version: number
}

export function readFileId(db: DatabaseSync): SqliteFileId {
  return { id: pragma(db, 'application_id'), version: pragma(db, 'user_version') }
}

export function writeFileId(db: DatabaseSync, { id, version }: SqliteFileId): void {
  db.exec(`PRAGMA application_id = ${id}; PRAGMA user_version = ${version}`)
}

/** Tells whether the file belongs to another program. An empty file belongs to no program. */
export function isForeign(db: DatabaseSync, ours: number): boolean {
  const { id, version } = readFileId(db)
  if (id === ours) return false
  return id !== 0 || version !== 0 || db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.['n'] !== 0
}

/**
 * Runs `work` in one transaction, and returns its result. Waits while another process writes.
 * @throws errors of `work`, or of node:sqlite
 */
export function transaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    // Some errors make SQLite roll back itself.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function pragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  const value = db.prepare(`PRAGMA ${name}`).get()?.[name]
  return typeof value === 'number' ? value : 0
}

interface SchemaOptions {
  /** The id that marks files of this kind (PRAGMA application_id). */
  readonly id: number
  /** One script for each version, from version 1. Released scripts must not change: add a new script. */
  readonly scripts: readonly string[]
}

/** The schema of one kind of SQLite file. Each version adds a script. */
export class Schema {
  readonly #options: SchemaOptions

  constructor(options: SchemaOptions) {
    this.#options = options
  }

  get latest(): number {
    return this.#options.scripts.length
  }

  /** Reads the schema version of a file; 0 = no schema yet. @throws {StoreError} `foreign`, `newer` */
  versionOf(db: DatabaseSync): number {
    if (isForeign(db, this.#options.id)) throw new StoreError('foreign', 'the file is a database of another program')
    const { version } = readFileId(db)
    if (version > this.latest) {
      throw new StoreError('newer', `the file has schema version ${version}, written by a newer gateway; ` +
        `this one knows versions up to ${this.latest}`)
    }
    return version
  }

  /**
   * Migrates in one transaction. Several processes can do so at the same time.
   * @throws {StoreError} `foreign`, `newer`; or node:sqlite's error
   */
  migrate(db: DatabaseSync): void {
    if (this.versionOf(db) === this.latest) return
    const { id, scripts } = this.#options
    transaction(db, () => {
      // Read the version again, because another process may have migrated the file while this process waited for the lock.
      for (const script of scripts.slice(this.versionOf(db))) db.exec(script)
      writeFileId(db, { id, version: this.latest })
    })
  }
}
