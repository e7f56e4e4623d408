import { within, type Clock, type Timer } from '../../base/clock.ts'
import { messageOf } from '../../base/message-of.ts'
import { Database, type Row } from '../postgres/database.ts'
import { DatabaseError } from '../postgres/database-error.ts'
import { migrate } from '../postgres/migrate.ts'
import { KeyCopy, type SharedBlockRow, type SharedChanges, type SharedKeyRow } from './key-copy.ts'
import { hasOldSecret, NOT_UNIQUE } from './shared-keys.ts'

export interface KeySyncOptions {
  readonly url: string
  readonly instance: string
  /** The id of this process in gateway.instances. */
  readonly process: string
  readonly file: string
  readonly clock: Pick<Clock, 'setTimeout' | 'monotonic'>
  /** Called when the copy may have changed. The callee applies the changes before it returns. */
  readonly onChanged: () => void
  /** Called once for each cause. */
  readonly onFailure: (why: string) => void
  readonly onRecovered: () => void
  /** Called when a key of this gateway is renamed, because another gateway has a key with its name. */
  readonly onRenamed: (from: string, to: string) => void
}

/** Milliseconds between two checks. Checks are needed because notifications can be lost, for example in a connection pooler. */
const POLL_MS = 750
const RETRY_MS = 500
const TIMEOUT_MS = 2_000
/** Milliseconds that the start of a gateway waits for the keys. */
const START_TIMEOUT_MS = 3_000

/** One statement, so that all results show the same state of the database. */
const CHANGES = `SELECT
  (SELECT value FROM gateway.settings WHERE name = 'database') AS database,
  gateway.last_key_change() AS position,
  (SELECT json_agg(json_build_object('id', id, 'name', name, 'digest', encode(digest, 'hex'), 'created_at', created_at,
    'revoked_at', revoked_at, 'properties', properties) ORDER BY change) FROM gateway.keys WHERE change > $1) AS keys,
  (SELECT json_agg(json_build_object('digest', encode(digest, 'hex'), 'name', name, 'blocked_at', blocked_at))
    FROM gateway.key_blocks WHERE change > $1) AS blocks`

/** Writes a key unless PostgreSQL has revoked or rotated it, because an outdated copy must not restore a key or a replaced secret. */
const UPLOAD = `INSERT INTO gateway.keys AS known (name, digest, created_at, revoked_at, properties)
  SELECT $1, $2, $3, $4::bigint, $5 WHERE NOT EXISTS (SELECT FROM gateway.keys WHERE ${hasOldSecret('$2::bytea')})
  ON CONFLICT (digest) DO UPDATE SET revoked_at = excluded.revoked_at
    WHERE known.revoked_at IS NULL AND excluded.revoked_at IS NOT NULL`

/**
 * Keeps the copy of PostgreSQL's keys up to date. First writes keys to PostgreSQL that only the copy has: from before the cluster, or from
 * a lost database.
 */
export class KeySync {
  readonly #options: KeySyncOptions
  readonly #database: Database
  readonly #ready = Promise.withResolvers<void>()
  #copy: KeyCopy | null = null
  #isMigrated = false
  #isListening = false
  #isRunning = false
  #runsAgain = false
  #isClosed = false
  #timer: Timer | null = null
  #failure: string | null = null
  /** The last change that this process has applied and confirmed to PostgreSQL; null = none yet. Written by this class. */
  applied: number | null = null

  constructor(options: KeySyncOptions) {
    this.#options = options
    this.#database = new Database({
      url: options.url,
      name: `gateway keys ${options.instance}`,
      onNotification: () => void this.#run(),
      onLost: () => {
        this.#isListening = false
      },
    })
    void this.#run()
  }

  /** Resolves when the keys are up to date, or after a timeout. */
  ready(): Promise<void> {
    return within(this.#options.clock, START_TIMEOUT_MS, this.#ready.promise)
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#database.close()
    if (!this.#isRunning) this.#copy?.close()
  }

  async #run(): Promise<void> {
    this.#runsAgain = true
    if (this.#isRunning || this.#isClosed) return
    this.#isRunning = true
    this.#timer?.cancel()
    let delay = POLL_MS
    try {
      while (this.#runsAgain && !this.#isClosed) {
        this.#runsAgain = false
        await this.#sync()
      }
      if (this.#failure !== null) this.#options.onRecovered()
      this.#failure = null
    } catch (error) {
      delay = RETRY_MS
      const why = messageOf(error)
      if (why !== this.#failure && !this.#isClosed) this.#options.onFailure(why)
      this.#failure = why
    }
    this.#isRunning = false
    this.#ready.resolve()
    if (this.#isClosed) this.#copy?.close()
    else this.#timer = this.#options.clock.setTimeout(() => void this.#run(), delay)
  }

  async #sync(): Promise<void> {
    const copy = this.#copy ??= new KeyCopy(this.#options.file)
    if (!this.#isMigrated) await migrate(this.#database)
    this.#isMigrated = true
    if (!this.#isListening) {
      await this.#database.query('LISTEN gateway_keys', [], TIMEOUT_MS)
      this.#isListening = this.#database.isOpen
    }
    const state = copy.state()
    let changes = await this.#changes(state?.position ?? 0)
    // The copy differs if the database was replaced or restored, or if keys were created in the file outside the cluster.
    const isDifferent = state === null || state.database !== changes.database || state.position > changes.position || copy.hasOwnKeys()
    if (isDifferent) {
      await this.#upload(copy)
      changes = await this.#changes(0)
    }
    if (isDifferent || changes.position > state.position) copy.apply(changes, isDifferent)
    await this.#confirm(changes.position)
    await this.#uploadAuditEvents(copy)
  }

  async #changes(since: number): Promise<SharedChanges> {
    const [row] = await this.#database.query(CHANGES, [since], TIMEOUT_MS)
    const { database, position, keys, blocks } = row as Row
    return {
      database: String(database),
      position: Number(position),
      keys: (keys ?? []) as SharedKeyRow[],
      blocks: (blocks ?? []) as SharedBlockRow[],
    }
  }

  async #confirm(position: number): Promise<void> {
    if (position === this.applied) return
    this.#options.onChanged()
    await this.#database.query('UPDATE gateway.instances SET key_change = $2 WHERE process = $1', [this.#options.process, position], TIMEOUT_MS)
    this.applied = position
  }

  async #upload(copy: KeyCopy): Promise<void> {
    const { keys, blocks } = copy.local()
    for (const key of keys) await this.#uploadKey(key)
    for (const { digest, name, blocked_at: at } of blocks) {
      await this.#database.query(`INSERT INTO gateway.key_blocks (digest, name, blocked_at) VALUES ($1, $2, $3)
        ON CONFLICT (digest) DO NOTHING`, [Buffer.from(digest, 'hex'), name, at], TIMEOUT_MS)
    }
  }

  async #uploadKey({ name, digest, created_at: createdAt, revoked_at: revokedAt, properties }: Omit<SharedKeyRow, 'id'>): Promise<void> {
    for (let n = 0; ; n++) {
      const given = n === 0 ? name : `${name} (${[this.#options.instance, ...n > 1 ? [n] : []].join(' ')})`
      try {
        await this.#database.query(UPLOAD, [given, Buffer.from(digest, 'hex'), createdAt, revokedAt, JSON.stringify(properties)], TIMEOUT_MS)
        if (n > 0) this.#options.onRenamed(name, given)
        return
      } catch (error) {
        if (!(error instanceof DatabaseError) || error.sqlState !== NOT_UNIQUE) throw error
      }
    }
  }

  /** Sends the audit events of the copy that PostgreSQL does not have yet. */
  async #uploadAuditEvents(copy: KeyCopy): Promise<void> {
    for (;;) {
      const { origin, events } = copy.auditEvents()
      const last = events.at(-1)
      if (last === undefined) return
      const text = JSON.stringify(events).replaceAll(String.raw`\u0000`, String.raw`\ufffd`)
      await this.#database.query(`INSERT INTO gateway.audit (at, actor, address, action, subject, detail, origin, origin_id)
        SELECT at, actor, address, action, subject, detail, $1, id FROM json_to_recordset($2)
          AS given (id bigint, at bigint, actor text, address text, action text, subject text, detail text)
        ON CONFLICT (origin, origin_id, at) DO NOTHING`, [origin, text], TIMEOUT_MS)
      copy.removeAuditEvents(last.id)
    }
  }
}
