import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { transaction } from '../../base/files/sqlite-schema.ts'
import type { StoredAuditEvent } from '../../auth/audit.ts'
import { openKeyDatabase } from '../../auth/key-file.ts'
import { PROPERTY_COLUMNS, type KeyProperties } from '../../auth/key-record.ts'

export interface SharedKeyRow {
  readonly id: number
  readonly name: string
  /** Hexadecimal. */
  readonly digest: string
  readonly created_at: number
  readonly revoked_at: number | null
  readonly properties: KeyProperties
}

export type SharedBlockRow = { readonly digest: string; readonly name: string; readonly blocked_at: number | null }

export interface CopyState {
  /** Id of the PostgreSQL database. */
  readonly database: string
  /** Number of the last change that the copy contains. */
  readonly position: number
}

export interface SharedChanges extends CopyState {
  /** Ordered by change number. */
  readonly keys: readonly SharedKeyRow[]
  readonly blocks: readonly SharedBlockRow[]
}

/** Milliseconds that a statement waits for locks of other processes. If it fails, the next synchronization repeats the change. */
const PATIENCE_MS = 200
const MAX_AUDIT_EVENTS = 500

/**
 * A copy of PostgreSQL's keys in the gateway's key file, so that the gateway works while PostgreSQL is unreachable. Several processes can
 * write the same changes.
 */
export class KeyCopy {
  readonly #db: DatabaseSync

  /** @throws the errors of `KeyFile` */
  constructor(file: string) {
    this.#db = openKeyDatabase(file, PATIENCE_MS)
  }

  /** null = the file is not a copy yet. */
  state(): CopyState | null {
    const row = this.#db.prepare('SELECT database, position FROM copies').get()
    return row === undefined ? null : { database: String(row['database']), position: Number(row['position']) }
  }

  /** @returns true = the file has keys from before the gateway joined the cluster, which are not revoked */
  hasOwnKeys(): boolean {
    return this.#db.prepare('SELECT 1 FROM keys WHERE shared_id IS NULL AND revoked_at IS NULL LIMIT 1').get() !== undefined
  }

  local(): Pick<SharedChanges, 'blocks'> & { readonly keys: readonly Omit<SharedKeyRow, 'id'>[] } {
    const keys = this.#db.prepare('SELECT * FROM keys ORDER BY id').all().map(row => ({
      name: String(row['name']),
      digest: Buffer.from(row['digest'] as Uint8Array).toString('hex'),
      created_at: Number(row['created_at']),
      revoked_at: row['revoked_at'] as number | null,
      properties: Object.fromEntries(PROPERTY_COLUMNS.map(column => [column, row[column] as string | number | null])) as KeyProperties,
    }))
    const blocks = this.#db.prepare('SELECT lower(hex(digest)) AS digest, name, blocked_at FROM blocks').all()
    return { keys, blocks: blocks as unknown as SharedBlockRow[] }
  }

  /** Writes all changes or none. @param isComplete true = the changes contain all keys of the database, so other keys are revoked */
  apply({ database, position, keys, blocks }: SharedChanges, isComplete: boolean): void {
    transaction(this.#db, () => {
      const state = this.state()
      // Skip changes that another process has written already.
      if (!isComplete && state?.database === database && state.position >= position) return
      if (isComplete) this.#db.prepare('UPDATE keys SET shared_id = NULL, revoked_at = coalesce(revoked_at, ?)').run(Date.now())
      for (const key of keys) this.#writeKey(key)
      const block = this.#db.prepare(`INSERT INTO blocks (digest, name, blocked_at) VALUES (?, ?, ?)
        ON CONFLICT (digest) DO UPDATE SET name = excluded.name, blocked_at = excluded.blocked_at`)
      for (const { digest, name, blocked_at: at } of blocks) block.run(Buffer.from(digest, 'hex'), name, at)
      this.#db.prepare(`INSERT INTO copies VALUES (1, ?, ?, ?)
        ON CONFLICT (only) DO UPDATE SET database = excluded.database, position = excluded.position`)
        .run(randomUUID(), database, position)
    })
  }

  /** @returns the oldest audit events that PostgreSQL does not have yet, and the id of this file */
  auditEvents(): { readonly origin: string, readonly events: readonly StoredAuditEvent[] } {
    const events = this.#db.prepare(`SELECT * FROM audit ORDER BY id LIMIT ${MAX_AUDIT_EVENTS}`).all()
    const origin = this.#db.prepare('SELECT origin FROM copies').get()?.['origin']
    return { origin: String(origin), events: events as unknown as StoredAuditEvent[] }
  }

  removeAuditEvents(lastId: number): void {
    this.#db.prepare('DELETE FROM audit WHERE id <= ?').run(lastId)
  }

  close(): void {
    this.#db.close()
  }

  #writeKey({ id, name, digest, created_at: createdAt, revoked_at: revokedAt, properties }: SharedKeyRow): void {
    const secret = Buffer.from(digest, 'hex')
    const values = [name, secret, createdAt, revokedAt, ...PROPERTY_COLUMNS.map(column => properties[column] ?? null), id]
    const columns = ['name', 'digest', 'created_at', 'revoked_at', ...PROPERTY_COLUMNS, 'shared_id']
    // Look up the shared id first, because a rotation changes the digest. A key from before the cluster has no shared id yet.
    const known = this.#db.prepare('SELECT id FROM keys WHERE shared_id = ?1').get(id)
      ?? this.#db.prepare('SELECT id FROM keys WHERE digest = ?1').get(secret)
    if (known === undefined) {
      this.#db.prepare(`INSERT INTO keys (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`).run(...values)
    } else {
      this.#db.prepare(`UPDATE keys SET ${columns.map(column => `${column} = ?`).join(', ')} WHERE id = ?`)
        .run(...values, known['id'] as number)
    }
  }
}
