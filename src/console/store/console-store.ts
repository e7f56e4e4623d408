import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { readAuditEvents, recordAuditEvent } from '../../auth/audit.ts'
import type { Actor, AuditEvent, StoredAuditEvent } from '../../auth/audit.ts'
import { KeyFile } from '../../auth/key-file.ts'
import { readBlocks, readKeys } from '../../auth/key-reader.ts'
import type { BlockRecord } from '../../auth/key-reader.ts'
import type { KeyEdit, KeyRecord, NewSecret } from '../../auth/key-record.ts'
import type { KeyWriter } from '../../auth/key-writer.ts'
import { SharedKeys } from '../../cluster/keys/shared-keys.ts'
import { fileIdentity } from '../../base/files/file-exists.ts'
import { transaction } from '../../base/files/sqlite-schema.ts'
import { configLines } from '../../config/text/lines.ts'
import type { ConfigLines } from '../../config/text/lines.ts'
import { maskedText } from '../../config/text/masked.ts'
import type { Key } from '../../config/key-types.ts'
import type { DatabaseOptions } from '../../cluster/postgres/database.ts'
import { DatabaseError } from '../../cluster/postgres/database-error.ts'
import { CircuitHistory } from './circuit-history.ts'
import type { StoredCircuitChange } from './circuit-history.ts'
import { ConsoleDatabase } from './console-database.ts'
import { openConsoleFile } from './console-file.ts'
import { LoginAttemptTable } from './login-attempts.ts'
import type { LoginAttempt } from './login-attempts.ts'
import { SessionTable } from './session-table.ts'
import type { SessionRecord } from './session-table.ts'
import { ReloadHistory } from './reload-history.ts'
import type { GatewayReload, ReportedReload } from './reload-history.ts'
import { SharedReloads } from './shared-reloads.ts'
import { SharedSessions } from './shared-sessions.ts'

export interface ConsoleStoreOptions {
  /** null = the state is lost when the process ends. */
  readonly consoleFile: string | null
  /** null = there are no stored keys. */
  readonly keyFile: string | null
  /** Where all gateways keep their keys, sessions and audit list; null = this gateway has its own. */
  readonly shared: SharedOptions | null
}

interface SharedOptions extends Pick<DatabaseOptions, 'url' | 'name'> {
  /** The name of this gateway. */
  readonly gateway: string
}

/** The result of a change of a key. */
export type ChangeResult =
  /** Every gateway applies it. */
  | 'done'
  /** It is stored, but a running gateway has not confirmed it. */
  | 'unconfirmed'
  /** There is no live key with that name. */
  | 'unknown'

/** A worker's activity, for the others to show. */
export interface Snapshot {
  readonly worker: number
  readonly data: string
}

/** ms for running gateways to apply a change; they check the store at least every second. */
const PUBLISH_TIMEOUT = 2_500
/** ms between two checks whether they have. */
const POLL_INTERVAL = 10

/** Everything that the console stores. Its calls block, so it runs in a thread of its own. */
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

  /** While PostgreSQL is unreachable, the session is known to this gateway only. */
  async openSession(
    digest: Uint8Array, session: Pick<SessionRecord, 'kind' | 'name' | 'credential'>, now: number,
  ): Promise<void> {
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

  /** While PostgreSQL is unreachable, the event is stored here; the gateway sends it later. */
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

  /** While PostgreSQL is unreachable, returns the keys that this gateway knows. */
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

  /** @throws {StoreError} `taken` */
  async createKey(key: Key, now: number, by: Actor): Promise<ChangeResult> {
    const file = this.#keyWriter()
    await file.create({ ...key, digest: Buffer.from(key.digest) }, now, by)
    return waitUntilPublished(file)
  }

  async changeKey(name: string, to: KeyEdit, detail: string, now: number, by: Actor): Promise<ChangeResult> {
    const file = this.#keyWriter()
    const found = await file.find('name', name)
    if (found === null || found.revokedAt !== null) return 'unknown'
    await file.change(found, to, detail, now, by)
    return waitUntilPublished(file)
  }

  async rotateKey(name: string, to: NewSecret, now: number, by: Actor): Promise<ChangeResult> {
    const file = this.#keyWriter()
    const found = await file.find('name', name)
    if (found === null || found.revokedAt !== null) return 'unknown'
    await file.rotate(found, { ...to, digest: Buffer.from(to.digest) }, now, by)
    return waitUntilPublished(file)
  }

  async revokeKey(name: string, now: number, by: Actor): Promise<ChangeResult> {
    const file = this.#keyWriter()
    const found = await file.find('name', name)
    if (found === null || found.revokedAt !== null) return 'unknown'
    await file.revoke(found, now, by)
    return waitUntilPublished(file)
  }

  async setBlocked(
    name: string, digest: Uint8Array, blocked: boolean, now: number, by: Actor,
  ): Promise<ChangeResult> {
    const file = this.#keyWriter()
    const key = { name, digest: Buffer.from(digest) }
    if (blocked) await file.block(key, now, by)
    else await file.unblock(key, now, by)
    // Wait even without a change: a gateway may still have to confirm an earlier one.
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
   * Every worker reports each reload; only the first report is added to the audit list, with the gateway's name if
   * there are several.
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

  /** Newest first, of all gateways. */
  async reloads(): Promise<GatewayReload[]> {
    return await this.#sharedReloads?.read() ?? this.#reloads.read().map(reload => ({ ...reload, gateway: null }))
  }

  /** Masks the secrets of a configuration's text; for a large one this takes a while. */
  masked(text: string): string {
    return maskedText(text)
  }

  /** Parsing a large configuration takes a while. */
  lines(text: string): ConfigLines {
    return configLines(text)
  }

  saveSnapshot({ worker, data }: Snapshot, now: number): void {
    this.#db.prepare('INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)').run(worker, now, data)
  }

  /**
   * The snapshots of a time range. An older one belongs to a worker that has ended; a later one was made before the clock
   * was set back.
   *
   * @param since ms since 1970
   * @param until ms since 1970: now, plus how far other clocks may be ahead
   */
  snapshots(since: number, until: number): Snapshot[] {
    return this.#db.prepare('SELECT worker, data FROM snapshots WHERE at BETWEEN ? AND ? ORDER BY worker')
      .all(since, until)
      .map(({ worker, data }) => ({ worker: Number(worker), data: String(data) }))
  }

  /** 32 bytes that all workers and all gateways share, and nobody else knows. */
  async secret(): Promise<Uint8Array> {
    const bytes = this.#db.prepare('SELECT bytes FROM secret').get()?.['bytes']
    if (!(bytes instanceof Uint8Array)) {
      throw new Error('the console\'s file has lost its secret: delete console.db')
    }
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

  #keyWriter(): KeyWriter {
    return this.#sharedKeys ?? this.#keyFile()
  }

  #keyFile(): KeyFile {
    const { keyFile } = this.#options
    if (keyFile === null) throw new Error('the configuration names no ledger, beside which keys are kept')
    const identity = fileIdentity(keyFile)
    // If another file has replaced the open one, writing to it would have no effect.
    if (this.#keys === null || (identity !== null && identity !== this.#keys.identity)) {
      this.#keys?.file.close()
      this.#keys = null
      const file = new KeyFile(keyFile)
      this.#keys = { file, identity: fileIdentity(keyFile) }
    }
    return this.#keys.file
  }
}

/** Like KeyFile's own wait, but without blocking other calls. */
async function waitUntilPublished(keys: KeyWriter): Promise<ChangeResult> {
  const end = performance.now() + PUBLISH_TIMEOUT
  while (!await keys.waitUntilPublished(0)) {
    if (performance.now() > end) return 'unconfirmed'
    await pause(POLL_INTERVAL)
  }
  return 'done'
}
