import { setTimeout as pause } from 'node:timers/promises'
import type { Key } from '../../config/key-types.ts'
import { Database, withoutNul, type DatabaseOptions, type Query, type Row } from '../postgres/database.ts'
import { DatabaseError } from '../postgres/database-error.ts'
import { migrate } from '../postgres/migrate.ts'
import { truncateAuditText, type Actor, type AuditEvent, type StoredAuditEvent } from '../../auth/audit.ts'
import { blockOf, type BlockRecord } from '../../auth/key-reader.ts'
import { oldSecretsAfter, propertiesOf, readRecord, summaryOf } from '../../auth/key-record.ts'
import type { CallerQuota, KeyEdit, KeyProperties, KeyRecord, KeyRow, KeySummary, NewSecret } from '../../auth/key-record.ts'
import { quotaError, revokedError, takenError } from '../../auth/key-schema.ts'
import { descriptionText, rotationText } from '../../auth/key-texts.ts'
import type { KeyWriter } from '../../auth/key-writer.ts'

/** SQLSTATE unique_violation: https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const NOT_UNIQUE = '23505'
const POLL_MS = 20
/** Maximum attempts at a change that fails because other processes change the same data. */
const MAX_TRIES = 5

/** Finds a gateway that does not use the last change of keys yet. Ignores gateways that have not reported for 20 s. */
const UNPUBLISHED = `SELECT FROM gateway.instances
  WHERE seen_at > now() - interval '20 s' AND key_change < gateway.last_key_change() LIMIT 1`

/** The keys of all gateways, in PostgreSQL. Each statement writes a change together with its audit event. */
export class SharedKeys implements KeyWriter {
  readonly #database: Database
  #migration: Promise<void> | null = null

  constructor(options: Pick<DatabaseOptions, 'url' | 'name'>) {
    this.#database = new Database(options)
  }

  async create(key: Key, now: number, by: Actor, quota: CallerQuota | null = null): Promise<void> {
    const values = [key.name, key.digest, now, JSON.stringify(propertiesOf(key))]
    const bound = quota === null || key.caller === undefined ? null : [key.caller, quota.live, quota.perDay]
    try {
      const isCreated = await this.#change(
        `INSERT INTO gateway.keys (name, digest, created_at, properties) SELECT $1::text, $2::bytea, $3::bigint, $4::jsonb
          ${bound === null ? '' : 'WHERE gateway.may_make_key($5, $3, $6, $7)'} RETURNING id`,
        [...values, ...bound ?? []],
        { at: now, ...by, action: 'key.created', subject: key.name, detail: descriptionText(key) },
      )
      if (!isCreated) throw quotaError(await this.#isFull(key.caller ?? '', quota?.live ?? 0, now) ? 'live' : 'perDay')
    } catch (error) {
      throw error instanceof DatabaseError && error.sqlState === NOT_UNIQUE ? takenError(key.name) : error
    }
  }

  async #isFull(caller: string, live: number, now: number): Promise<boolean> {
    const [row] = await this.#query('SELECT gateway.live_keys_of($1, $2) AS live', [caller, now])
    return Number(row?.['live']) >= live
  }

  async change({ id, name }: KeySummary, to: KeyEdit, detail: string, now: number, by: Actor): Promise<void> {
    await this.#change(
      'UPDATE gateway.keys SET properties = properties || $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id',
      [id, JSON.stringify(propertiesOf(to))],
      { at: now, ...by, action: 'key.changed', subject: name, detail },
    )
  }

  async rotate({ id, name }: KeySummary, to: NewSecret, now: number, by: Actor): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const [row] = await this.#query('SELECT * FROM gateway.keys WHERE id = $1', [id])
      if (row === undefined || row['revoked_at'] !== null) throw revokedError(name)
      const old = oldSecretsAfter(readRecord(keyRowOf(row)).key, to.oldValidUntil, now)
      const properties: KeyProperties = { prefix: to.prefix, old_secrets: old }
      const isRotated = await this.#change(
        `UPDATE gateway.keys SET digest = $2, properties = properties || $3
          WHERE id = $1 AND revoked_at IS NULL AND change = $4 RETURNING id`,
        [id, to.digest, JSON.stringify(properties), row['change']],
        { at: now, ...by, action: 'key.rotated', subject: name, detail: rotationText(to, now) },
      )
      if (isRotated) return
    }
    throw new Error(`the key ${JSON.stringify(name)} is being changed by others; try again`)
  }

  async find(by: 'name' | 'digest' | 'id', value: string | Buffer | number): Promise<KeySummary | null> {
    const isOld = by === 'digest' ? `OR ${hasOldSecret('$1')}` : ''
    const [row] = await this.#query(`SELECT id, name, digest, revoked_at FROM gateway.keys WHERE ${by} = $1 ${isOld}
      ORDER BY revoked_at IS NOT NULL, revoked_at DESC LIMIT 1`, [value])
    return row === undefined ? null : summaryOf(row)
  }

  async revoke({ id, name, revokedAt }: KeySummary, now: number, by: Actor): Promise<void> {
    if (revokedAt !== null) return
    await this.#change(
      'UPDATE gateway.keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING id', [id, now],
      { at: now, ...by, action: 'key.revoked', subject: name, detail: null },
    )
  }

  block({ name, digest }: Pick<Key, 'name' | 'digest'>, now: number, by: Actor): Promise<boolean> {
    return this.#change(
      `INSERT INTO gateway.key_blocks AS known (digest, name, blocked_at) VALUES ($1, $2, $3)
        ON CONFLICT (digest) DO UPDATE SET name = excluded.name, blocked_at = excluded.blocked_at
        WHERE known.blocked_at IS NULL RETURNING name`,
      [digest, name, now], { at: now, ...by, action: 'key.blocked', subject: name, detail: null },
    )
  }

  unblock({ name, digest }: Pick<Key, 'name' | 'digest'>, now: number, by: Actor): Promise<boolean> {
    return this.#change(
      'UPDATE gateway.key_blocks SET blocked_at = NULL WHERE digest = $1 AND blocked_at IS NOT NULL RETURNING name',
      [digest], { at: now, ...by, action: 'key.unblocked', subject: name, detail: null },
    )
  }

  async list(): Promise<{ keys: KeyRecord[], blocks: BlockRecord[] }> {
    const keys = await this.#query('SELECT * FROM gateway.keys ORDER BY id')
    const blocks = await this.#query('SELECT * FROM gateway.key_blocks WHERE blocked_at IS NOT NULL')
    return { keys: keys.map(row => readRecord(keyRowOf(row))), blocks: blocks.map(row => blockOf(row)) }
  }

  async recordAuditEvent(entry: AuditEvent): Promise<void> {
    await this.#change('SELECT 1 AS one', [], entry)
  }

  async audit(before: number | null, count: number): Promise<StoredAuditEvent[]> {
    const rows = await this.#query(`SELECT id, at, actor, address, action, subject, detail FROM gateway.audit
      WHERE id < $1 ORDER BY id DESC LIMIT $2`, [before ?? Number.MAX_SAFE_INTEGER, count])
    return rows.map(row => ({ ...row as unknown as StoredAuditEvent, id: Number(row['id']), at: Number(row['at']) }))
  }

  async waitUntilPublished(patience: number): Promise<boolean> {
    const end = performance.now() + patience
    try {
      for (;;) {
        if ((await this.#query(UNPUBLISHED)).length === 0) return true
        if (performance.now() >= end) return false
        await pause(POLL_MS)
      }
    } catch (error) {
      // The change is stored, but it is unknown whether all gateways use the change already.
      if (error instanceof DatabaseError) return false
      throw error
    }
  }

  close(): void {
    this.#database.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** @param sql changes and returns rows @returns false = no row changed, so no audit event was written */
  async #change(sql: string, values: readonly unknown[], entry: AuditEvent): Promise<boolean> {
    const { at, actor, address, action, subject, detail } = entry
    const noted = [at, truncateAuditText(actor), address, action, subject, detail && truncateAuditText(detail)].map(withoutNul)
    const places = ['bigint', 'text', 'text', 'text', 'text', 'text'].map((type, n) => `$${values.length + n + 1}::${type}`)
    const rows = await this.#query(`WITH changed AS (${sql}), noted AS (
        INSERT INTO gateway.audit (at, actor, address, action, subject, detail)
          SELECT ${places.join(', ')} WHERE EXISTS (SELECT FROM changed))
      SELECT FROM changed LIMIT 1`, [...values, ...noted])
    return rows.length > 0
  }

  readonly #query: Query = async (sql, values, timeoutMs) => {
    this.#migration ??= migrate(this.#database)
    try {
      await this.#migration
    } catch (error) {
      this.#migration = null
      throw error
    }
    return this.#database.query(sql, values, timeoutMs)
  }
}

/** SQL condition: a rotation has replaced the secret that has this digest. */
export function hasOldSecret(digest: string): string {
  return `(properties ->> 'old_secrets')::jsonb @> jsonb_build_array(jsonb_build_array(encode(${digest}, 'hex')))`
}

/** Converts a row of gateway.keys to the form of a key file. */
function keyRowOf({ id, name, digest, created_at: createdAt, revoked_at: revokedAt, properties }: Row): KeyRow {
  return {
    ...properties as KeyProperties, id: Number(id), name: String(name), digest: digest as Buffer<ArrayBuffer>,
    created_at: Number(createdAt), revoked_at: revokedAt === null ? null : Number(revokedAt),
  }
}
