import { CapsuleKeys, type CapsuleKey } from '../../base/secrets/capsule-keys.ts'
import { within, type Clock, type Timer } from '../../base/clock.ts'
import { messageOf } from '../../base/message-of.ts'
import { Database, type Query } from '../postgres/database.ts'
import { migrate } from '../postgres/migrate.ts'
import { mergeWithFile } from '../../auth/capsule-key-file.ts'

export interface CapsuleKeyStoreOptions {
  readonly file: string | null
  /** postgres://user:password@host/database; null = no cluster. */
  readonly url: string | null
  readonly instance: string
  /** The key that all workers use if no store has a key; null = this process creates a key. */
  readonly first: CapsuleKey | null
  readonly clock: Pick<Clock, 'wall' | 'setTimeout'>
  /** Called once for each new cause of a failure. */
  readonly onFailure: (why: string) => void
  readonly onRecovered: () => void
}

/** Milliseconds between two reads of the file. Long, because another worker's new key is used only a day after its creation. */
const FILE_INTERVAL_MS = 60 * 60 * 1000
const DATABASE_INTERVAL_MS = 30_000
const RETRY_MS = 2_000
const TIMEOUT_MS = 2_000
/** Milliseconds that the start of a gateway waits for the keys. */
const START_TIMEOUT_MS = 3_000

/** Number of an advisory lock that no other program uses: the letters GWCK. */
const LOCK = 0x4757434b
/** Prefix of the names of the keys' rows in gateway.settings. */
const PREFIX = 'capsule_key:'

/**
 * Stores the keys of capsules: in a file for restarts, and in PostgreSQL for the gateways of a cluster. Requests use the keys in memory,
 * and wait for neither store.
 */
export class CapsuleKeyStore {
  readonly keys: CapsuleKeys
  readonly #options: CapsuleKeyStoreOptions
  readonly #database: Database | null
  readonly #ready = Promise.withResolvers<void>()
  #isMigrated = false
  #timer: Timer | null = null
  #failure: string | null = null
  #isClosed = false

  /** Reads the keys from the file. Without a cluster, creates the first key if there is none. */
  constructor(options: CapsuleKeyStoreOptions) {
    const { first, clock, url, instance } = options
    this.#options = options
    this.keys = new CapsuleKeys(clock, first)
    this.#database = url === null ? null : new Database({ url, name: `gateway capsules ${instance}` })
    this.#attempt(() => this.#mergeWithFile())
    if (this.#database === null) this.#schedule()
    else void this.#run(this.#database)
  }

  /** Resolves when this process has the keys of the cluster, or after a timeout. */
  async ready(): Promise<void> {
    if (this.#database !== null) await within(this.#options.clock, START_TIMEOUT_MS, this.#ready.promise)
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#database?.close()
  }

  #schedule(): void {
    if (this.#isClosed) return
    const interval = this.#database === null ? FILE_INTERVAL_MS : DATABASE_INTERVAL_MS
    this.#timer = this.#options.clock.setTimeout(() => {
      if (this.#database !== null) return void this.#run(this.#database)
      this.#attempt(() => this.#mergeWithFile())
      this.#schedule()
    }, this.#failure === null ? interval : RETRY_MS)
  }

  async #run(database: Database): Promise<void> {
    let failed: unknown = null
    try {
      if (!this.#isMigrated) await migrate(database)
      this.#isMigrated = true
      await database.transaction(query => this.#mergeWithDatabase(query))
    } catch (error) {
      failed = error
    }
    this.#ready.resolve()
    if (this.#isClosed) return
    this.#attempt(() => {
      this.#mergeWithFile()
      if (failed !== null) throw failed
    })
    this.#schedule()
  }

  #attempt(work: () => void): void {
    const { onFailure, onRecovered } = this.#options
    try {
      work()
    } catch (error) {
      const why = messageOf(error)
      if (why !== this.#failure) onFailure(why)
      this.#failure = why
      return
    }
    if (this.#failure !== null) onRecovered()
    this.#failure = null
  }

  #mergeWithFile(): void {
    const { file } = this.#options
    if (file !== null) mergeWithFile(file, this.keys, this.#database === null)
  }

  async #mergeWithDatabase(query: Query): Promise<void> {
    // Use a lock, so that of several gateways that start together, only the first creates a key.
    await query('SELECT pg_advisory_xact_lock($1)', [LOCK], TIMEOUT_MS)
    const rows = await query('SELECT value FROM gateway.settings WHERE name LIKE $1', [`${PREFIX}%`], TIMEOUT_MS)
    const shared = rows.map(({ value }) => JSON.parse(String(value)) as CapsuleKey)
    this.keys.add(shared)
    this.keys.renew()
    const known = new Set(shared.map(({ id }) => id))
    for (const key of this.keys.all.filter(({ id }) => !known.has(id))) {
      await query('INSERT INTO gateway.settings VALUES ($1, $2)', [PREFIX + key.id, JSON.stringify(key)], TIMEOUT_MS)
    }
  }
}
