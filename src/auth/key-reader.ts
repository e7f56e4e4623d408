import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { fileExists } from '../base/files/file-exists.ts'
import { readRecord, type KeyRecord, type KeyRow } from './key-record.ts'
import { StoreError } from '../base/files/store-error.ts'
import { KEY_SCHEMA } from './key-schema.ts'

/** A blocked key, configured or stored. */
export interface BlockRecord {
  readonly digest: Buffer
  /** The name of the key when it was blocked. */
  readonly name: string
  /** ms since 1970; null = it was unblocked. */
  readonly blockedAt: number | null
}

/** Reads snapshots of the store. Between `begin` and `end` a snapshot is held: writers see that a reader still uses it. */
export class KeyReader {
  readonly #db: DatabaseSync
  readonly #version: StatementSync
  readonly #since: StatementSync
  readonly #blocks: StatementSync

  /** @throws {StoreError} `foreign`, `newer`, `outdated`; else node:sqlite's error */
  constructor(file: string, patience: number) {
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: patience })
    try {
      if (KEY_SCHEMA.versionOf(this.#db) < KEY_SCHEMA.latest) {
        throw new StoreError('outdated', 'the file is empty or of an older version; ' +
          'the gateway brings it up to date when it starts')
      }
      this.#version = this.#db.prepare('SELECT max(last) AS version FROM changes')
      this.#since = this.#db.prepare('SELECT * FROM keys WHERE change > ? ORDER BY id')
      this.#blocks = this.#db.prepare('SELECT digest, name, blocked_at FROM blocks WHERE change > ?')
    } catch (error) {
      this.#db.close()
      throw error
    }
  }

  /** Holds a snapshot. @returns the number of the last change in it; 0 = empty */
  begin(): number {
    this.#db.exec('BEGIN')
    const version = this.#version.get()?.['version']
    return typeof version === 'number' ? version : 0
  }

  /** Keys created or changed after the change with this number, revoked keys included. */
  rowsSince(version: number): Iterable<KeyRow> {
    return this.#since.iterate(version)
  }

  /** Digests blocked or unblocked after the change with this number. */
  blocksSince(version: number): BlockRecord[] {
    return this.#blocks.all(version).map(row => blockOf(row))
  }

  end(): void {
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
  }

  close(): void {
    this.#db.close()
  }
}

/** Reads a row of the table in a file or in PostgreSQL. */
export function blockOf({ digest, name, blocked_at: blockedAt }: Readonly<Record<string, unknown>>): BlockRecord {
  return { digest: Buffer.from(digest as Uint8Array), name: String(name), blockedAt: blockedAt === null ? null : Number(blockedAt) }
}

const BUSY_TIMEOUT_MS = 5_000

/**
 * All keys of a store, revoked ones included, in the order of their creation. A missing file has no keys.
 * @throws {StoreError} `foreign`, `newer`, `outdated`, `row`; else what node:fs or node:sqlite throw
 */
export function readKeys(file: string): KeyRecord[] {
  return withReader(file, reader => Array.from(reader.rowsSince(0), readRecord))
}

/** The keys that are blocked now. @throws like `readKeys` */
export function readBlocks(file: string): BlockRecord[] {
  return withReader(file, reader => reader.blocksSince(0).filter(({ blockedAt }) => blockedAt !== null))
}

function withReader<T>(file: string, read: (reader: KeyReader) => T[]): T[] {
  if (!fileExists(file)) return []
  const reader = new KeyReader(file, BUSY_TIMEOUT_MS)
  try {
    return read(reader)
  } finally {
    reader.close()
  }
}
