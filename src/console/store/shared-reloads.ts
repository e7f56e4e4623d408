import { RETRY_MS, type ConsoleDatabase } from './console-database.ts'
import { MAX_RELOADS, type GatewayReload, type ReloadHistory, type StoredReload } from './reload-history.ts'

const MAX_SHOWN = 50
/** Maximum number of reloads of all gateways together. It is not per gateway, because the names of gateways can change. */
const MAX_KEPT = 500

const INSERT = `INSERT INTO gateway.reloads (instance, at, digest, data)
  SELECT $1, at, decode(digest, 'hex'), data FROM json_to_recordset($2) AS given (at bigint, digest text, data text)
  ON CONFLICT DO NOTHING`
const TRIM_OWN = `DELETE FROM gateway.reloads WHERE instance = $1 AND at <
  (SELECT at FROM gateway.reloads WHERE instance = $1 ORDER BY at DESC OFFSET ${MAX_RELOADS - 1} LIMIT 1)`
const TRIM = `DELETE FROM gateway.reloads WHERE at < (SELECT at FROM gateway.reloads ORDER BY at DESC OFFSET ${MAX_KEPT - 1} LIMIT 1)`

/** The last reloads of all gateways, in PostgreSQL. */
export class SharedReloads {
  readonly #database: ConsoleDatabase
  readonly #history: ReloadHistory
  readonly #gateway: string
  /** true if PostgreSQL contains all reloads of this gateway. */
  #isShared = false
  #retry: NodeJS.Timeout | null = null

  /** @param history the reloads of this gateway @param gateway the name of this gateway */
  constructor(database: ConsoleDatabase, history: ReloadHistory, gateway: string) {
    this.#database = database
    this.#history = history
    this.#gateway = gateway
  }

  /** Writes the reloads of this gateway to PostgreSQL. If PostgreSQL is unreachable, retries later. */
  async share(): Promise<void> {
    const records = this.#history.records().map(({ at, digest, data }) => ({ at, digest: Buffer.from(digest).toString('hex'), data }))
    this.#isShared = await this.#database.ask(async () => {
      await this.#database.query(INSERT, [this.#gateway, JSON.stringify(records)])
      await this.#database.query(TRIM_OWN, [this.#gateway])
      await this.#database.query(TRIM, [])
      return true
    }) ?? false
    if (this.#isShared) return
    this.#retry ??= setTimeout(() => {
      this.#retry = null
      // Ignore a failure, because the next reload, or the next request for the page, tries again.
      this.share().catch(() => undefined)
    }, RETRY_MS).unref()
  }

  /** The reloads, the newest first. If PostgreSQL is unreachable, only the reloads of this gateway. */
  async read(): Promise<GatewayReload[]> {
    if (!this.#isShared) await this.share()
    const rows = await this.#database.ask(() =>
      this.#database.query('SELECT instance, data FROM gateway.reloads ORDER BY at DESC LIMIT $1', [MAX_SHOWN]))
    if (rows === null) return this.#history.read().map(reload => ({ ...reload, gateway: this.#gateway }))
    return rows.map(({ instance, data }) => ({ ...JSON.parse(String(data)) as StoredReload, gateway: String(instance) }))
  }

  close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
  }
}
