import type { Clock, Timer } from '../../base/clock.ts'
import { credentialUnavailable, type GatewayError } from '../../base/errors.ts'
import { CONSTANT, type CredentialState } from './credential-state.ts'
import { UNAUTHORIZED, type Authorization, type Credential } from './credential.ts'
import type { FaultReporter } from './fault-reporter.ts'

/** A credential as its source returns it. */
export interface FetchedCredential {
  readonly authorization: Authorization
  /** Milliseconds after which the credential must be replaced. */
  readonly lifetimeMs: number
}

export interface RefreshOptions {
  readonly clock: Clock
  readonly reporter: FaultReporter
  /**
   * Gets a credential from its source. @param signal aborted at the deadline
   * @throws any error; only the reason of a GatewayError credential_unavailable is reported
   */
  fetch(signal: AbortSignal): Promise<FetchedCredential>
  /** true = the credential is invalid after its lifetime; false = the old credential is used until a new one is fetched. */
  readonly expires: boolean
}

const FETCH_TIMEOUT_MS = 10_000
/** The credential is refreshed when this share of its lifetime is left, but not earlier than `MAX_REFRESH_WINDOW` ms before its end. */
const REFRESH_SHARE = 0.2
const MAX_REFRESH_WINDOW = 5 * 60_000
/** The credential is not used in this last share of its lifetime, at most `MAX_EXPIRY_MARGIN` ms, because requests take time to arrive. */
const EXPIRY_SHARE = 0.05
const MAX_EXPIRY_MARGIN = 30_000
const FIRST_RETRY_DELAY_MS = 1_000
const MAX_RETRY_DELAY_MS = 30_000
/** The latest possible date, ms since 1970. Later times, by which a server reports that a token never expires, are lowered to it. */
const MAX_TIME = 8.64e15
/**
 * Minimum ms between two fetches because of refusals, because the upstream may refuse each new credential too. The interval is short at
 * first, and doubles with each fetch that follows the previous one within twice the maximum.
 */
const FIRST_FORCED_INTERVAL = 1_000
const MAX_FORCED_INTERVAL = 10_000

/**
 * Refreshes the credential before its end, by one fetch for all waiting requests. If no request has used the credential, it is not
 * refreshed, and the next request fetches it.
 */
export class RefreshingCredential implements Credential {
  readonly refusalStatuses = UNAUTHORIZED
  readonly #options: RefreshOptions
  #authorization: Authorization | null = null
  /** ms since 1970. */
  #fetchedAt: number | null = null
  #expiresAt: number | null = null
  /** The authorization is used until this time, ms on the monotonic clock. */
  #usableUntil = 0
  /** A request has used the credential since it was fetched. */
  #isUsed = false
  /** The running fetch; null = none. */
  #fetching: Promise<Authorization> | null = null
  #controller: AbortController | null = null
  #timer: Timer | null = null
  #fault: GatewayError | null = null
  /** After a failure, the source is not used before this time, ms on the monotonic clock. */
  #retryAt = 0
  #failures = 0
  /** When the latest fetch because of a refusal started, ms on the monotonic clock. */
  #forcedAt = -Infinity
  #forcedInterval = FIRST_FORCED_INTERVAL
  #closed = false

  constructor(options: RefreshOptions) {
    this.#options = options
  }

  authorize(refused: readonly Authorization[]): Authorization | Promise<Authorization> {
    this.#isUsed = true
    const current = this.#authorization
    const now = this.#options.clock.monotonic()
    const isRefused = current !== null && refused.includes(current)
    if (current !== null && !isRefused && now < this.#usableUntil) return current
    if (this.#fetching !== null) return this.#fetching
    if (isRefused) this.#forceAt(now)
    if (this.#fault !== null && now < this.#retryAt) throw this.#fault
    return this.#fetch()
  }

  recordRefusal(refused: readonly Authorization[]): boolean {
    if (refused.length > 1) return false
    const isReplaced = this.#authorization !== refused[0] || this.#fetching !== null
    return isReplaced || this.#options.clock.monotonic() - this.#forcedAt >= this.#forcedInterval
  }

  #forceAt(now: number): void {
    const isRepeated = now - this.#forcedAt < 2 * MAX_FORCED_INTERVAL
    this.#forcedInterval = isRepeated ? Math.min(this.#forcedInterval * 2, MAX_FORCED_INTERVAL) : FIRST_FORCED_INTERVAL
    this.#forcedAt = now
  }

  states(): readonly CredentialState[] {
    return [{ ...CONSTANT, fetchedAt: this.#fetchedAt, expiresAt: this.#expiresAt, fault: this.#options.reporter.reason }]
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#controller?.abort()
  }

  #fetch(): Promise<Authorization> {
    this.#timer?.cancel()
    return this.#fetching ??= this.#run().finally(() => { this.#fetching = null })
  }

  async #run(): Promise<Authorization> {
    const { clock, reporter, expires } = this.#options
    const startedAt = clock.monotonic()
    try {
      const { authorization, lifetimeMs } = await this.#fetchInTime()
      const margin = Math.min(lifetimeMs * EXPIRY_SHARE, MAX_EXPIRY_MARGIN)
      this.#authorization = authorization
      this.#fetchedAt = clock.wall()
      this.#expiresAt = expires ? Math.min(this.#fetchedAt + lifetimeMs, MAX_TIME) : null
      this.#usableUntil = expires ? startedAt + lifetimeMs - margin : Infinity
      this.#isUsed = false
      this.#failures = 0
      this.#fault = null
      reporter.recovered()
      const window = expires ? Math.min(lifetimeMs * REFRESH_SHARE, MAX_REFRESH_WINDOW) : 0
      this.#refreshIn(startedAt + lifetimeMs - window - clock.monotonic())
      return authorization
    } catch (error) {
      this.#fault = reporter.failed(error)
      const delay = Math.min(FIRST_RETRY_DELAY_MS * 2 ** this.#failures, MAX_RETRY_DELAY_MS)
      this.#failures++
      this.#retryAt = clock.monotonic() + delay
      if (this.#retryAt < this.#usableUntil) this.#refreshIn(delay)
      throw this.#fault
    }
  }

  /** Fetches with a deadline, which also ends the wait if the source ignores the signal. */
  async #fetchInTime(): Promise<FetchedCredential> {
    const controller = new AbortController()
    this.#controller = controller
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = this.#options.clock.setTimeout(() => controller.abort(), FETCH_TIMEOUT_MS)
    controller.signal.addEventListener('abort', () => {
      reject(credentialUnavailable(`the source of the credential did not respond within ${FETCH_TIMEOUT_MS / 1000} s`))
    })
    try {
      return await Promise.race([this.#options.fetch(controller.signal), promise])
    } finally {
      timer.cancel()
    }
  }

  /** Schedules a refresh. The timer fetches only if a request has used the credential, or if the last fetch failed. */
  #refreshIn(ms: number): void {
    if (this.#closed) return
    this.#timer = this.#options.clock.setTimeout(() => {
      // Ignore the error here: it was reported, and affects no request yet.
      if (this.#isUsed || this.#failures > 0) this.#fetch().catch(() => {})
    }, Math.max(ms, FIRST_RETRY_DELAY_MS))
  }
}
