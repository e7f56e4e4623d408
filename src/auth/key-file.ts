import { utimesSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDirectory } from '../base/files/directory.ts'
import { createPrivateFile } from '../base/files/private-file.ts'
import { transaction } from '../base/files/sqlite-schema.ts'
import type { Key } from '../config/key-types.ts'
import { readAuditEvents, recordAuditEvent, type Actor, type AuditEvent, type StoredAuditEvent } from './audit.ts'
import { readBlocks, readKeys, type BlockRecord } from './key-reader.ts'
import { oldSecretsAfter, propertiesOf, readRecord, summaryOf } from './key-record.ts'
import type { CallerQuota, KeyEdit, KeyRecord, KeySummary, NewSecret } from './key-record.ts'
import { StoreError } from '../base/files/store-error.ts'
import { KEY_SCHEMA, quotaError, revokedError, takenError } from './key-schema.ts'
import { descriptionText, rotationText } from './key-texts.ts'
import type { KeyWriter } from './key-writer.ts'

const BUSY_TIMEOUT_MS = 5_000
const DAY_MS = 86_400_000
/** ms between two attempts to get the checkpoint lock, for which SQLite does not wait. */
const RETRY_INTERVAL_MS = 10
/** SQLITE_CONSTRAINT_UNIQUE: https://www.sqlite.org/rescode.html */
const NOT_UNIQUE = 2067

/** The store of keys that are created at run time, beside the ledger. */
export function keyFileOf(ledgerFile: string): string {
  return join(dirname(ledgerFile), 'keys.db')
}

/** A store in a file. Transactions are short, and block. */
export class KeyFile implements KeyWriter {
  readonly #file: string
  readonly #db: DatabaseSync

  /** Opens a store like `openKeyDatabase`. @param patience ms that a statement may wait for another process */
  constructor(file: string, patience = BUSY_TIMEOUT_MS) {
    this.#file = file
    this.#db = openKeyDatabase(file, patience)
  }

  create(key: Key, now: number, by: Actor, quota: CallerQuota | null = null): void {
    const { name, digest, caller } = key
    const properties = Object.entries(propertiesOf(key))
    this.#withAuditEvent({ at: now, ...by, action: 'key.created', subject: name, detail: descriptionText(key) }, () => {
      if (quota !== null && caller !== undefined) this.#checkQuota(caller, quota, now)
      try {
        const columns = ['name', 'digest', 'created_at', ...properties.map(([column]) => column)]
        this.#db.prepare(`INSERT INTO keys (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`)
          .run(name, digest, now, ...properties.map(([, value]) => value))
      } catch (error) {
        if ((error as { errcode?: unknown }).errcode !== NOT_UNIQUE) throw error
        throw takenError(name)
      }
    })
  }

  /** Inside the transaction, which keeps other processes from writing. */
  #checkQuota(caller: string, quota: CallerQuota, now: number): void {
    const count = this.#db.prepare(`SELECT count(*) FILTER (WHERE revoked_at IS NULL AND coalesce(expires_at, ?2 + 1) > ?2) AS live,
      count(*) FILTER (WHERE created_at > ?2 - ${DAY_MS}) AS today FROM keys WHERE caller = ?1`).get(caller, now)
    if (Number(count?.['live']) >= quota.live) throw quotaError('live')
    if (Number(count?.['today']) >= quota.perDay) throw quotaError('perDay')
  }

  /** Counts of the key stay. */
  change({ id, name }: KeySummary, to: KeyEdit, detail: string, now: number, by: Actor): void {
    this.#withAuditEvent({ at: now, ...by, action: 'key.changed', subject: name, detail }, () => {
      for (const [column, value] of Object.entries(propertiesOf(to))) {
        this.#db.prepare(`UPDATE keys SET ${column} = ? WHERE id = ? AND revoked_at IS NULL`).run(value, id)
      }
    })
  }

  rotate({ id, name }: KeySummary, to: NewSecret, now: number, by: Actor): void {
    const { digest, prefix, oldValidUntil } = to
    const detail = rotationText(to, now)
    this.#withAuditEvent({ at: now, ...by, action: 'key.rotated', subject: name, detail }, () => {
      // Read inside the transaction: another rotation can have happened in between.
      const row = this.#db.prepare('SELECT * FROM keys WHERE id = ?').get(id)
      if (row === undefined || row['revoked_at'] !== null) throw revokedError(name)
      const old = oldSecretsAfter(readRecord(row).key, oldValidUntil, now)
      this.#db.prepare('UPDATE keys SET digest = ?, prefix = ?, old_secrets = ? WHERE id = ?').run(digest, prefix, old, id)
    })
  }

  find(by: 'name' | 'digest' | 'id', value: string | Buffer | number): KeySummary | null {
    const isOld = by === 'digest' ? "OR EXISTS (SELECT 1 FROM json_each(old_secrets) WHERE json_each.value ->> 0 = lower(hex(?1)))" : ''
    const row = this.#db.prepare(`SELECT id, name, digest, revoked_at FROM keys WHERE ${by} = ?1 ${isOld}
      ORDER BY revoked_at IS NOT NULL, revoked_at DESC LIMIT 1`).get(value)
    return row === undefined ? null : summaryOf(row)
  }

  /** A revoked key cannot be used again. */
  revoke({ id, name, revokedAt }: KeySummary, now: number, by: Actor): void {
    if (revokedAt !== null) return
    this.#withAuditEvent({ at: now, ...by, action: 'key.revoked', subject: name, detail: null }, () => {
      this.#db.prepare('UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL').run(now, id)
    })
  }

  block({ name, digest }: Pick<Key, 'name' | 'digest'>, now: number, by: Actor): boolean {
    if (this.isBlocked(digest)) return false
    this.#withAuditEvent({ at: now, ...by, action: 'key.blocked', subject: name, detail: null }, () => {
      this.#db.prepare(`INSERT INTO blocks (digest, name, blocked_at) VALUES (?, ?, ?)
        ON CONFLICT (digest) DO UPDATE SET name = excluded.name, blocked_at = excluded.blocked_at`)
        .run(digest, name, now)
    })
    return true
  }

  unblock({ name, digest }: Pick<Key, 'name' | 'digest'>, now: number, by: Actor): boolean {
    if (!this.isBlocked(digest)) return false
    this.#withAuditEvent({ at: now, ...by, action: 'key.unblocked', subject: name, detail: null }, () => {
      this.#db.prepare('UPDATE blocks SET blocked_at = NULL WHERE digest = ?').run(digest)
    })
    return true
  }

  isBlocked(digest: Buffer): boolean {
    return this.#db.prepare('SELECT 1 FROM blocks WHERE digest = ? AND blocked_at IS NOT NULL').get(digest) !== undefined
  }

  list(): { keys: KeyRecord[], blocks: BlockRecord[] } {
    return { keys: readKeys(this.#file), blocks: readBlocks(this.#file) }
  }

  recordAuditEvent(entry: AuditEvent): void {
    this.#withAuditEvent(entry, () => {})
  }

  audit(before: number | null, count: number): StoredAuditEvent[] {
    return readAuditEvents(this.#db, before, count)
  }

  /**
   * A gateway holds a read transaction on its applied state until it applies a newer one, and a FULL checkpoint waits for
   * all readers of older states (https://www.sqlite.org/c3ref/wal_checkpoint_v2.html). So no list of gateways is needed,
   * and a dead gateway delays nobody.
   */
  waitUntilPublished(patience: number): boolean {
    this.#notifyWatchers()
    const end = performance.now() + patience
    const checkpoint = this.#db.prepare('PRAGMA wal_checkpoint(FULL)')
    for (;;) {
      this.#db.exec(`PRAGMA busy_timeout = ${Math.max(0, Math.ceil(end - performance.now()))}`)
      if (checkpoint.get()?.['busy'] === 0) return true
      if (performance.now() >= end) return false
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_INTERVAL_MS)
    }
  }

  close(): void {
    this.#db.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #withAuditEvent(entry: AuditEvent, change: () => void): void {
    transaction(this.#db, () => {
      change()
      recordAuditEvent(this.#db, entry)
    })
  }

  /** Wakes processes that watch the file: SQLite's own writes woke them before the change was readable. */
  #notifyWatchers(): void {
    try {
      const now = new Date()
      utimesSync(this.#file, now, now)
    } catch (error) {
      // Only the owner can do this; gateways also check every second.
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    }
  }
}

/**
 * Opens a store for writing; makes its directory, the file and the schema where they are missing.
 * @param patience ms that a statement may wait for another process
 * @throws {StoreError} `foreign`, `newer`, `unshared`; else what node:fs or node:sqlite throw
 */
export function openKeyDatabase(file: string, patience: number): DatabaseSync {
  makeDirectory(dirname(file))
  // A reader of the file would see who has keys, and a writer could add keys.
  createPrivateFile(file)
  const db = new DatabaseSync(file, { timeout: patience })
  try {
    KEY_SCHEMA.migrate(db)
    const { journal_mode: mode } = db.prepare('PRAGMA journal_mode = WAL').get() ?? {}
    if (mode === 'wal') return db
    throw new StoreError('unshared', 'the file system cannot share a file between processes as WAL needs')
  } catch (error) {
    db.close()
    throw error
  }
}
