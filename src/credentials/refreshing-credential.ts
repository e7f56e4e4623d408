import type { Clock, Timer } from '../base/clock.ts'
import { credentialUnavailable } from '../base/errors.ts'
import type { GatewayError } from '../base/errors.ts'
import { CONSTANT } from './credential-state.ts'
import type { CredentialState } from './credential-state.ts'
import { UNAUTHORIZED } from './credential.ts'
import type { Authorization, Credential } from './credential.ts'
import type { FaultReporter } from './fault-reporter.ts'

/** What a source returned. */
export interface FetchedCredential {
  readonly authorization: Authorization
  /** Milliseconds after which it has to be replaced. */
  readonly lifetimeMs: number
}

export interface RefreshOptions {
  readonly clock: Clock
  readonly reporter: FaultReporter
  /**
   * Gets a credential from its source.
   *
   * @param signal aborted at the deadline
   * @throws anything; the reason of a GatewayError credential_unavailable is reported
   */
  fetch(signal: AbortSignal): Promise<FetchedCredential>
  /** It stops being valid at the end of its lifetime; false = an old one is used as long as there is no new one. */
  readonly expires: boolean
}

/** Milliseconds that a source may take. */
const FETCH_TIMEOUT = 10_000
/** It is fetched again when this share of its lifetime is left, but no sooner than this many ms before its end. */
const REFRESH_SHARE = 0.2
const MAX_REFRESH_WINDOW = 5 * 60_000
/** It is not used for this share of its lifetime before its end, at most so many ms: requests take time to arrive. */
const EXPIRY_SHARE = 0.05
const MAX_EXPIRY_MARGIN = 30_000
/** Milliseconds between two attempts at a source that fails; doubled each time. */
const FIRST_RETRY_DELAY = 1_000
const MAX_RETRY_DELAY = 30_000
/** The last moment that a date can be, ms since 1970: a server may say that a token never ends. */
const MAX_TIME = 8.64e15
/**
 * Milliseconds between two fetches because the upstream refused the credential: it may refuse each new one too. The first repetition
 * comes soon, because a token can be revoked twice. The time is doubled with each fetch that follows another within the longest.
 */
const FIRST_FORCED_INTERVAL = 1_000
const MAX_FORCED_INTERVAL = 10_000

/**
 * A credential that is fetched ahead of its end, once for all requests that wait for it. An upstream without requests
 * has its credential fetched by the next one.
 */
export class RefreshingCredential implements Credential {
  readonly refusalStatuses = UNAUTHORIZED
  readonly #options: RefreshOptions
  #authorization: Authorization | null = null
  /** When it was fetched and when it ends, ms since 1970. */
  #fetchedAt: number | null = null
  #expiresAt: number | null = null
  /** On the monotonic clock: until then the authorization is used. */
  #usableUntil = 0
  /** It was used since it was fetched. */
  #isUsed = false
  /** The fetch that is in progress; null = none is. */
  #fetching: Promise<Authorization> | null = null
  #controller: AbortController | null = null
  #timer: Timer | null = null
  #fault: GatewayError | null = null
  /** On the monotonic clock: a source that failed is not asked before. */
  #retryAt = 0
  #failures = 0
  /** On the monotonic clock: when it was last fetched because the upstream refused it. */
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
    this.#fetching ??= this.#run().finally(() => {
      this.#fetching = null
    })
    return this.#fetching
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
      const delay = Math.min(FIRST_RETRY_DELAY * 2 ** this.#failures, MAX_RETRY_DELAY)
      this.#failures++
      this.#retryAt = clock.monotonic() + delay
      if (this.#retryAt < this.#usableUntil) this.#refreshIn(delay)
      throw this.#fault
    }
  }

  /** Ends at the deadline, whatever the source does with the signal. */
  async #fetchInTime(): Promise<FetchedCredential> {
    const controller = new AbortController()
    this.#controller = controller
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = this.#options.clock.setTimeout(() => controller.abort(), FETCH_TIMEOUT)
    controller.signal.addEventListener('abort', () => {
      reject(credentialUnavailable(`the source of the credential did not respond within ${FETCH_TIMEOUT / 1000} s`))
    })
    try {
      return await Promise.race([this.#options.fetch(controller.signal), promise])
    } finally {
      timer.cancel()
    }
  }

  /** An upstream that is not used needs no fresh credential. */
  #refreshIn(ms: number): void {
    if (this.#closed) return
    this.#timer = this.#options.clock.setTimeout(() => {
      // Its failure is reported, and does not concern a request yet.
      if (this.#isUsed || this.#failures > 0) this.#fetch().catch(() => {})
    }, Math.max(ms, FIRST_RETRY_DELAY))
  }
}
