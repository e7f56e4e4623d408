import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { readAuditEvents, recordAuditEvent, type Actor, type AuditEvent, type StoredAuditEvent } from '../../auth/audit.ts'
import { KeyFile } from '../../auth/key-file.ts'
import { readBlocks, readKeys, type BlockRecord } from '../../auth/key-reader.ts'
import type { CallerQuota, KeyEdit, KeyRecord, KeySummary, NewSecret } from '../../auth/key-record.ts'
import type { KeyWriter } from '../../auth/key-writer.ts'
import { SharedKeys } from '../../cluster/keys/shared-keys.ts'
import { fileIdentity } from '../../base/files/file-exists.ts'
import { transaction } from '../../base/files/sqlite-schema.ts'
import { configLines, type ConfigLines } from '../../config/text/lines.ts'
import { maskedText } from '../../config/text/masked.ts'
import type { Key } from '../../config/key-types.ts'
import type { DatabaseOptions } from '../../cluster/postgres/database.ts'
import { DatabaseError } from '../../cluster/postgres/database-error.ts'
import { CircuitHistory, type StoredCircuitChange } from './circuit-history.ts'
import { ConsoleDatabase } from './console-database.ts'
import { openConsoleFile } from './console-file.ts'
import { LoginAttemptTable, type LoginAttempt } from './login-attempts.ts'
import { SessionTable, type SessionRecord } from './session-table.ts'
import { ReloadHistory, type GatewayReload, type ReportedReload } from './reload-history.ts'
import { SharedReloads } from './shared-reloads.ts'
import { SharedSessions } from './shared-sessions.ts'

export interface ConsoleStoreOptions {
  /** Path of the console's file; null = its content is lost when the process ends. */
  readonly consoleFile: string | null
  /** Path of the key store; null = there is no key store. */
  readonly keyFile: string | null
  /** The database of several gateways; null = this gateway does not share keys, sessions and audit events. */
  readonly shared: Pick<DatabaseOptions, 'url' | 'name'> & { /** Name of this gateway. */ readonly gateway: string } | null
}

/**
 * `done`: every gateway applies the change; `unconfirmed`: the change is stored, but a running gateway has not confirmed it; `unknown`:
 * there is no such live key.
 */
export type ChangeResult = 'done' | 'unconfirmed' | 'unknown'

/** The activity of a worker as JSON, which the other workers read. */
interface Snapshot {
  readonly worker: number
  readonly data: string
}

/** Maximum ms to wait for running gateways, which check the store for changes at least every second. */
const PUBLISH_TIMEOUT = 2_500
/** ms between two checks whether every gateway applies the change. */
const POLL_INTERVAL = 10

/** The store of the console. It runs in a separate thread, because its calls block. */
export class ConsoleStore {
  readonly #options: ConsoleStoreOptions
  readonly #db: DatabaseSync
  readonly #sessions: SessionTable
  readonly #attempts: LoginAttemptTable
  readonly #circuits: CircuitHistory
  readonly #reloads: ReloadHistory
  readonly #sharedKeys: SharedKeys | null
  readonly #database: ConsoleDatabase | null
  readonly #sharedSessions: SharedSessions | null
  readonly #sharedReloads: SharedReloads | null
  #keys: { readonly file: KeyFile; readonly identity: string | null } | null = null

  constructor(options: ConsoleStoreOptions) {
    this.#options = options
    this.#db = openConsoleFile(options.consoleFile)
    this.#sessions = new SessionTable(this.#db)
    this.#attempts = new LoginAttemptTable(this.#db)
    this.#circuits = new CircuitHistory(this.#db)
    this.#reloads = new ReloadHistory(this.#db)
    const { shared } = options
    this.#sharedKeys = shared && new SharedKeys(shared)
    this.#database = shared && new ConsoleDatabase(shared)
    this.#sharedSessions = this.#database && new SharedSessions(this.#database)
    this.#sharedReloads = shared && this.#database && new SharedReloads(this.#database, this.#reloads, shared.gateway)
  }

  /** Opens a session. If PostgreSQL is unreachable, only this gateway knows the session. */
  async openSession(digest: Uint8Array, session: Pick<SessionRecord, 'kind' | 'name' | 'credential'>, now: number): Promise<void> {
    if (await this.#sharedSessions?.open(digest, session, now)) return
    this.#sessions.open(digest, session, now)
  }

  async findSession(digest: Uint8Array, now: number, uses: boolean): Promise<SessionRecord | null> {
    return this.#sessions.find(digest, now, uses) ?? await this.#sharedSessions?.find(digest, now, uses) ?? null
  }

  async closeSession(digest: Uint8Array): Promise<void> {
    this.#sessions.close(digest)
    await this.#sharedSessions?.close(digest)
  }

  /** @returns ms to wait; 0 = the attempt may begin */
  beginAttempt(attempt: LoginAttempt, now: number): number {
    return transaction(this.#db, () => this.#attempts.begin(attempt, now))
  }

  attemptSucceeded(attempt: LoginAttempt, now: number): void {
    this.#attempts.succeeded(attempt, now)
  }

  /** Records an audit event. If PostgreSQL is unreachable, the event is stored locally, and sent later. */
  async note(entry: AuditEvent): Promise<void> {
    if (this.#options.keyFile === null) return recordAuditEvent(this.#db, entry)
    try {
      await this.#keyWriter().recordAuditEvent(entry)
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
      this.#keyFile().recordAuditEvent(entry)
    }
  }

  async audit(before: number | null, count: number): Promise<StoredAuditEvent[]> {
    if (this.#options.keyFile === null) return readAuditEvents(this.#db, before, count)
    return this.#keyWriter().audit(before, count)
  }

  /** The stored keys. If PostgreSQL is unreachable, the keys that this gateway knows. */
  async storedKeys(): Promise<{ keys: KeyRecord[]; blocks: BlockRecord[] }> {
    const { keyFile } = this.#options
    try {
      if (this.#sharedKeys !== null) return await this.#sharedKeys.list()
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
    }
    if (keyFile === null || !existsSync(keyFile)) return { keys: [], blocks: [] }
    return { keys: readKeys(keyFile), blocks: readBlocks(keyFile) }
  }

  /** @param quota of a key that a caller makes @throws {StoreError} `taken`, `full`, `often` */
  async createKey(key: Key, now: number, by: Actor, quota: CallerQuota | null = null): Promise<ChangeResult> {
    const file = this.#keyWriter()
    await file.create({ ...key, digest: Buffer.from(key.digest) }, now, by, quota)
    return waitUntilPublished(file)
  }

  changeKey(name: string, to: KeyEdit, detail: string, now: number, by: Actor): Promise<ChangeResult> {
    return this.#editKey(name, (file, key) => file.change(key, to, detail, now, by))
  }

  rotateKey(name: string, to: NewSecret, now: number, by: Actor): Promise<ChangeResult> {
    return this.#editKey(name, (file, key) => file.rotate(key, { ...to, digest: Buffer.from(to.digest) }, now, by))
  }

  revokeKey(name: string, now: number, by: Actor): Promise<ChangeResult> {
    return this.#editKey(name, (file, key) => file.revoke(key, now, by))
  }

  async setBlocked(name: string, digest: Uint8Array, blocked: boolean, now: number, by: Actor): Promise<ChangeResult> {
    const file = this.#keyWriter()
    const key = { name, digest: Buffer.from(digest) }
    if (blocked) await file.block(key, now, by)
    else await file.unblock(key, now, by)
    // Wait even if nothing changed, because a gateway may not have confirmed an earlier change.
    return waitUntilPublished(file)
  }

  addCircuitChange(change: StoredCircuitChange): void {
    this.#circuits.add(change)
  }

  /** @param from ms since 1970 @param to ms since 1970 */
  circuitChanges(upstream: string, from: number, to: number): StoredCircuitChange[] {
    return this.#circuits.read(upstream, from, to)
  }

  /**
   * Records a reload. Every worker reports each reload; only the first report becomes an audit event. It has the gateway's name if there
   * are several gateways.
   */
  async addReload(reload: ReportedReload): Promise<void> {
    if (!this.#reloads.add(reload)) return
    const { at, applied, by, changes, problems } = reload
    const result = applied ? changes.join(', ') || 'nothing changed' : problems.join(', ')
    const { shared } = this.#options
    const detail = shared === null ? result : `gateway ${shared.gateway}: ${result}`
    await this.#sharedReloads?.share()
    await this.note({ at, actor: by, address: null, action: applied ? 'config.reloaded' : 'config.rejected', subject: null, detail })
  }

  /** The reloads of all gateways, the newest first. */
  async reloads(): Promise<GatewayReload[]> {
    return await this.#sharedReloads?.read() ?? this.#reloads.read().map(reload => ({ ...reload, gateway: null }))
  }

  /** Masks a configuration. The store's thread does this, because it takes long for a large configuration. */
  masked(text: string): string {
    return maskedText(text)
  }

  /** Reads the lines of a configuration. The store's thread does this, because it takes long for a large configuration. */
  lines(text: string): ConfigLines {
    return configLines(text)
  }

  saveSnapshot({ worker, data }: Snapshot, now: number): void {
    this.#db.prepare('INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)').run(worker, now, data)
  }

  /**
   * The snapshots of running workers. Leaves out older snapshots, whose workers have ended, and snapshots from before the clock was set
   * back.
   *
   * @param since ms since 1970
   * @param until ms since 1970: now, plus the time by which other clocks may be ahead
   */
  snapshots(since: number, until: number): Snapshot[] {
    return this.#db.prepare('SELECT worker, data FROM snapshots WHERE at BETWEEN ? AND ? ORDER BY worker').all(since, until)
      .map(({ worker, data }) => ({ worker: Number(worker), data: String(data) }))
  }

  /** The secret of 32 bytes, which is the same for all workers and gateways. */
  async secret(): Promise<Uint8Array> {
    const bytes = this.#db.prepare('SELECT bytes FROM secret').get()?.['bytes']
    if (!(bytes instanceof Uint8Array)) throw new Error('the console\'s file has lost its secret: delete console.db')
    const shared = await this.#sharedSessions?.secret(Buffer.from(bytes).toString('hex')) ?? null
    return shared === null ? bytes : Buffer.from(shared, 'hex')
  }

  close(): void {
    this.#keys?.file.close()
    this.#sharedKeys?.close()
    this.#sharedReloads?.close()
    this.#database?.close()
    this.#db.close()
  }

  async #editKey(name: string, edit: (file: KeyWriter, key: KeySummary) => unknown): Promise<ChangeResult> {
    const file = this.#keyWriter()
    const key = await file.find('name', name)
    if (key === null || key.revokedAt !== null) return 'unknown'
    await edit(file, key)
    return waitUntilPublished(file)
  }

  #keyWriter(): KeyWriter {
    return this.#sharedKeys ?? this.#keyFile()
  }

  #keyFile(): KeyFile {
    const { keyFile } = this.#options
    if (keyFile === null) throw new Error('the configuration names no ledger, beside which keys are kept')
    const identity = fileIdentity(keyFile)
    // Open the file again if another file has replaced it, because a write to the old file would have no effect.
    if (this.#keys === null || (identity !== null && identity !== this.#keys.identity)) {
      this.#keys?.file.close()
      this.#keys = null
      const file = new KeyFile(keyFile)
      this.#keys = { file, identity: fileIdentity(keyFile) }
    }
    return this.#keys.file
  }
}

/** Checks again and again, because the wait in `KeyFile` would block other calls. */
async function waitUntilPublished(keys: KeyWriter): Promise<ChangeResult> {
  const end = performance.now() + PUBLISH_TIMEOUT
  while (!await keys.waitUntilPublished(0)) {
    if (performance.now() > end) return 'unconfirmed'
    await pause(POLL_INTERVAL)
  }
  return 'done'
}
