import type { Clock, Timer } from '../../base/clock.ts'
import { credentialUnavailable, type GatewayError } from '../../base/errors.ts'
import { CONSTANT, type CredentialState } from './credential-state.ts'
import { UNAUTHORIZED, type Authorization, type Credential } from './credential.ts'
import type { FaultReporter } from './fault-reporter.ts'

/** The result of a source. */
export interface FetchedCredential {
  readonly authorization: Authorization
  /** ms after which the credential has to be replaced. */
  readonly lifetimeMs: number
}

export interface RefreshOptions {
  readonly clock: Clock
  readonly reporter: FaultReporter
  /**
   * Gets a credential from its source. @param signal aborted at the deadline
   * @throws anything; the reason of a GatewayError credential_unavailable is reported
   */
  fetch(signal: AbortSignal): Promise<FetchedCredential>
  /** The credential is invalid after its lifetime; false = an old one is used as long as there is no new one. */
  readonly expires: boolean
}

const FETCH_TIMEOUT_MS = 10_000
/** The credential is refreshed when this share of its lifetime is left, but at most this many ms before its end. */
const REFRESH_SHARE = 0.2
const MAX_REFRESH_WINDOW = 5 * 60_000
/** The credential is not used in this last share of its lifetime, at most this many ms: requests take time to arrive. */
const EXPIRY_SHARE = 0.05
const MAX_EXPIRY_MARGIN = 30_000
const FIRST_RETRY_DELAY_MS = 1_000
const MAX_RETRY_DELAY_MS = 30_000
/** ms since 1970 of the latest possible date: a server may report that a token never ends. */
const MAX_TIME = 8.64e15
/**
 * ms between two fetches caused by refusals: the upstream may refuse each new credential too. The first one comes soon, because
 * a token can be revoked twice. The interval doubles with each fetch that follows another within twice the maximum.
 */
const FIRST_FORCED_INTERVAL = 1_000
const MAX_FORCED_INTERVAL = 10_000

/**
 * One fetch refreshes the credential before its end, for all waiting requests. Without requests nothing is refreshed: the next
 * request fetches the credential.
 */
export class RefreshingCredential implements Credential {
  readonly refusalStatuses = UNAUTHORIZED
  readonly #options: RefreshOptions
  #authorization: Authorization | null = null
  /** ms since 1970. */
  #fetchedAt: number | null = null
  #expiresAt: number | null = null
  /** The authorization is used until then; ms on the monotonic clock. */
  #usableUntil = 0
  /** A request has used the credential since it was fetched. */
  #isUsed = false
  /** null = no fetch is running */
  #fetching: Promise<Authorization> | null = null
  #controller: AbortController | null = null
  #timer: Timer | null = null
  #fault: GatewayError | null = null
  /** A source that failed is not tried again before this time; ms on the monotonic clock. */
  #retryAt = 0
  #failures = 0
  /** When the latest fetch because of a refusal started; ms on the monotonic clock. */
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

  /** Fails at the deadline, even if the source ignores the signal. */
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

  /** An unused upstream needs no refreshed credential. */
  #refreshIn(ms: number): void {
    if (this.#closed) return
    this.#timer = this.#options.clock.setTimeout(() => {
      // The failure is reported, and affects no request yet.
      if (this.#isUsed || this.#failures > 0) this.#fetch().catch(() => {})
    }, Math.max(ms, FIRST_RETRY_DELAY_MS))
  }
}
