import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { messageOf } from '../base/message-of.ts'
import { Database } from './postgres/database.ts'
import { migrate } from './postgres/migrate.ts'

export interface HeartbeatOptions {
  readonly url: string
  readonly process: string
  readonly instance: string
  readonly version: string
  readonly clock: Pick<Clock, 'wall' | 'monotonic' | 'setTimeout'>
  readonly log: Logger
  /** Called after each heartbeat. @param failure why the heartbeat failed; null = it succeeded */
  readonly onBeat: (failure: string | null) => void
  readonly state: () => {
    readonly requestsInFlight: number
    readonly outboxRows: number
    /** Number of the last change of keys that this process uses; null = none yet. */
    readonly keyChange: number | null
  }
}

const HEARTBEAT_MS = 5_000
/** Maximum ms for one heartbeat. A later heartbeat is useless. */
const TIMEOUT_MS = 2_000
/** Milliseconds. A larger difference between the clocks of gateway and database is logged. */
export const MAX_CLOCK_DIFFERENCE_MS = 1_000
const WARNING_INTERVAL_MS = 60_000

/** Reports this process to the other gateways, in PostgreSQL. Does not log failures, because `Shipping` reports the same failures. */
export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #database: Database
  #timer: Timer | null = null
  #warnedAt = -Infinity
  #isClosed = false
  #isRegistered = false
  #startedAtMs: number

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#startedAtMs = options.clock.monotonic()
    this.#database = new Database({ url: options.url, name: `gateway heartbeat ${options.instance}` })
    void this.#run()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    if (this.#isRegistered && this.#database.isOpen) {
      await this.#database.query('DELETE FROM gateway.instances WHERE process = $1', [this.#options.process], TIMEOUT_MS).catch(() => undefined)
    }
    this.#database.close()
  }

  async #run(): Promise<void> {
    const failure = await this.#beat().then(() => null, messageOf)
    if (!this.#isClosed) this.#options.onBeat(failure)
    if (!this.#isClosed) this.#timer = this.#options.clock.setTimeout(() => void this.#run(), HEARTBEAT_MS)
  }

  async #beat(): Promise<void> {
    const { process, instance, version, clock, state } = this.#options
    if (!this.#isRegistered) await migrate(this.#database)
    const asked = clock.wall()
    const [row] = await this.#database.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now', [], TIMEOUT_MS)
    // Compare the database's clock with the middle of two readings of this process, because the database reads it between them.
    const difference = (asked + clock.wall()) / 2 - Number(row?.['now'])
    this.#warn(difference)
    const { requestsInFlight, outboxRows, keyChange } = state()
    const uptimeMs = clock.monotonic() - this.#startedAtMs
    await this.#database.query(`INSERT INTO gateway.instances AS known
      VALUES ($1, $2, $3, now() - $4 * interval '1 ms', now(), $5, $6, $7, $8)
      ON CONFLICT (process) DO UPDATE SET seen_at = now(), requests_in_flight = $5, outbox_rows = $6, clock_difference_ms = $7,
        key_change = coalesce(known.key_change, $8)`,
    [process, instance, version, uptimeMs, requestsInFlight, outboxRows, difference, keyChange], TIMEOUT_MS)
    if (!this.#isRegistered) await this.#database.query(`DELETE FROM gateway.instances WHERE seen_at < now() - interval '1 day'`)
    this.#isRegistered = true
  }

  #warn(difference: number): void {
    const { clock, log } = this.#options
    if (Math.abs(difference) <= MAX_CLOCK_DIFFERENCE_MS || clock.monotonic() - this.#warnedAt < WARNING_INTERVAL_MS) return
    this.#warnedAt = clock.monotonic()
    log.warn({ difference_ms: Math.round(difference) }, 'the clocks of this machine and of PostgreSQL differ by more than a second: synchronize them')
  }
}
