import type { Clock, MonotonicTime } from '../base/clock.ts'
import { candidateOf, type CandidateId } from './candidate.ts'
import type { CircuitCause, CircuitChange, CircuitFailure, CircuitLog } from './circuit-log.ts'

export interface HealthOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>
  /** Random number from 0 to 1, for the jitter. */
  readonly random: () => number
  /** Gets an entry for each circuit that opens or closes; absent = changes are not logged. */
  readonly circuits?: CircuitLog
}

/** Consecutive failures that open a circuit. */
const FAILURES_TO_OPEN = 3
/** This share of failures among the last `WINDOW` outcomes also opens a circuit. */
const FAILURE_RATE_TO_OPEN = 0.5
const WINDOW = 20
/** Milliseconds that a circuit stays open at first. Short, like MAX_OPEN_MS, so that a recovered target soon gets requests. */
const FIRST_OPEN_MS = 1_000
export const MAX_OPEN_MS = 5_000
/** Milliseconds after a successful response in which hints of other gateways are ignored. */
const HINT_IGNORED_MS = 15_000
/** Milliseconds after which another probe may start although the first has no response, which can take minutes if it is not streamed. */
const PROBE_TIMEOUT = 10_000
/** Longest pause that a candidate can request with Retry-After. */
const MAX_RETRY_AFTER = 60_000
/** Weight of the newest first-byte time in the moving average. */
const NEWEST_WEIGHT = 0.2

export const NO_CAUSE: CircuitCause = { first: null, last: null }
const NO_RETRY_AFTER: { readonly since: MonotonicTime, readonly until: MonotonicTime } = { since: -Infinity, until: 0 }

/** The health of one candidate. Its circuit opens after `FAILURES_TO_OPEN` consecutive failures, or at `FAILURE_RATE_TO_OPEN`. */
export class CandidateRecord {
  inFlight = 0
  /** Number of running probes without a response. */
  probes = 0
  /** When the last probe started. */
  #probedAt: MonotonicTime = 0
  /** The circuit allows no request before this time; 0 = closed. */
  openUntil: MonotonicTime = 0
  openedAt: MonotonicTime = 0
  /** Time of the last success. */
  workedAt: MonotonicTime = -Infinity
  /** The circuit is open only because another gateway has reported a failure. */
  isHint = false
  firstByteMs: number | null = null
  measuredAt: MonotonicTime = 0
  /** Failures since the last complete response. A response that only starts does not reset the number. */
  consecutive = 0
  /** The cause of the `consecutive` failures. */
  cause: CircuitCause = NO_CAUSE
  /** The pause that the candidate requested with Retry-After. */
  #retryAfter = NO_RETRY_AFTER
  #openings = 0
  /** The latest outcomes, oldest first; true = failed. */
  readonly #latest: boolean[] = []

  /** true = failures at this gateway opened the circuit, which is open or half-open. */
  get isOpen(): boolean {
    return this.openUntil !== 0 && !this.isHint
  }

  hint(ms: number, now: MonotonicTime, failure: CircuitFailure): void {
    // Prefer this gateway's results, because the failure may be in the other gateway's network.
    if (this.isOpen || now - this.workedAt < HINT_IGNORED_MS) return
    if (this.openUntil === 0) this.openedAt = now
    this.isHint = true
    this.openUntil = Math.max(this.openUntil, now + ms)
    this.cause = { first: failure, last: failure }
  }

  mayBeProbed(now: MonotonicTime): boolean {
    return this.probes === 0 || now - this.#probedAt >= PROBE_TIMEOUT
  }

  beginProbe(now: MonotonicTime): void {
    this.probes++
    this.#probedAt = now
  }

  /** Closes the circuit after a success of an attempt that began at `since`. A pause requested after `since` continues. */
  close(since: MonotonicTime, now: MonotonicTime): void {
    const { since: askedAt, until } = this.#retryAfter
    const isOlder = since < askedAt
    if (!isOlder) this.#retryAfter = NO_RETRY_AFTER
    this.openUntil = isOlder && until > now ? until : 0
    this.isHint = false
    this.workedAt = now
  }

  success(): void {
    this.consecutive = 0
    this.cause = NO_CAUSE
    this.#openings = 0
    this.#note(false)
  }

  recordFirstByte(ms: number, now: MonotonicTime): void {
    this.measuredAt = now
    this.firstByteMs = this.firstByteMs === null ? ms : this.firstByteMs + NEWEST_WEIGHT * (ms - this.firstByteMs)
  }

  failure(coolMs: number | null, { clock, random }: HealthOptions, failure: CircuitFailure | null): void {
    this.consecutive++
    this.cause = { first: this.isHint ? failure : this.cause.first ?? failure, last: failure }
    this.#note(true)
    const now = clock.monotonic()
    // Do not count a failure while the circuit is open, because the attempt began before the circuit opened.
    const wasOpen = this.isOpen && this.openUntil > now
    // With a failure at this gateway, the circuit is no longer open only because of a hint.
    this.isHint = false
    if (this.openUntil === 0) this.openedAt = now
    if (coolMs !== null) {
      this.#retryAfter = { since: now, until: Math.max(this.#retryAfter.until, now + Math.min(coolMs, MAX_RETRY_AFTER)) }
      this.openUntil = Math.max(this.openUntil, this.#retryAfter.until)
    }
    if (wasOpen || (this.openUntil === 0 && !this.#tripped())) return
    if (coolMs !== null && !this.#tripped()) return
    const pause = Math.min(FIRST_OPEN_MS * 2 ** this.#openings, MAX_OPEN_MS)
    this.#openings++
    this.#latest.length = 0
    // Wait for 50 to 100 % of the pause, so that several gateways do not probe at the same time.
    this.openUntil = Math.max(this.openUntil, now + pause * (0.5 + random() / 2))
  }

  #tripped(): boolean {
    if (this.consecutive >= FAILURES_TO_OPEN) return true
    return this.#latest.length >= WINDOW && this.#latest.filter(Boolean).length >= WINDOW * FAILURE_RATE_TO_OPEN
  }

  #note(failed: boolean): void {
    this.#latest.push(failed)
    if (this.#latest.length > WINDOW) this.#latest.shift()
  }
}

/** The attempt that a reporter watches: its record gives the reason of a failure. */
export interface ObservedAttempt {
  readonly requestId: string
  readonly record: { readonly outcome: string, readonly status?: number, readonly said?: string }
}

/** Prefix of the reason if the request was not sent because its credential is not available. */
const CREDENTIALS = 'credentials: '

/** A running attempt. The first call of `succeeded`, `failed` or `abandoned` ends it; later calls do nothing. */
export class HealthReporter {
  readonly #id: CandidateId
  readonly #record: CandidateRecord
  readonly #options: HealthOptions
  readonly #attempt: ObservedAttempt | null
  readonly #beganAt: MonotonicTime
  #isProbe: boolean
  #over = false

  constructor(id: CandidateId, record: CandidateRecord, options: HealthOptions, attempt: ObservedAttempt | null) {
    this.#id = id
    this.#record = record
    this.#options = options
    this.#attempt = attempt
    this.#beganAt = options.clock.monotonic()
    this.#isProbe = record.openUntil !== 0 && record.mayBeProbed(this.#beganAt)
    if (this.#isProbe) record.beginProbe(this.#beganAt)
  }

  /** Closes an open circuit, because the candidate responds. */
  responseStarted(firstByteMs: number): void {
    if (this.#over) return
    if (this.#isProbe) this.#endProbe()
    const now = this.#options.clock.monotonic()
    this.#close(now)
    this.#record.recordFirstByte(firstByteMs, now)
  }

  /** The response is complete. */
  succeeded(): void {
    if (!this.#end()) return
    this.#close(this.#options.clock.monotonic())
    this.#record.success()
  }

  /** Records a failure of the candidate. @param coolMs ms of the pause that the candidate requests; null = none */
  failed(coolMs: number | null): void {
    if (!this.#end()) return
    const wasOpen = this.#record.isOpen
    this.#record.failure(coolMs, this.#options, this.#failure())
    if (!wasOpen && this.#record.isOpen) this.#report('open')
  }

  /** Ends the attempt without a result, because the candidate is not responsible: for example, the client disconnected. */
  abandoned(): void {
    this.#end()
  }

  #end(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#record.inFlight--
    if (this.#isProbe) this.#endProbe()
    return true
  }

  #close(now: number): void {
    const wasOpen = this.#record.isOpen
    this.#record.close(this.#beganAt, now)
    if (wasOpen && !this.#record.isOpen) this.#report('closed')
  }

  #report(state: CircuitChange['state']): void {
    const { cause, consecutive } = this.#record
    this.#options.circuits?.add(changeOf(this.#id, state, cause, consecutive, this.#options.clock))
  }

  #failure(): CircuitFailure | null {
    if (this.#attempt === null) return null
    const { requestId, record: { outcome, status, said } } = this.#attempt
    // Without a credential no request was sent, so the outcome and the status say nothing.
    if (said?.startsWith(CREDENTIALS)) return { at: this.#options.clock.wall(), reason: said, requestId }
    // If the upstream sent an error, its status says more than the outcome.
    const what = status === undefined || status < 400 ? outcome : `status ${status}`
    return { at: this.#options.clock.wall(), reason: said === undefined ? what : `${what} ${said}`, requestId }
  }

  #endProbe(): void {
    this.#record.probes--
    this.#isProbe = false
  }
}

export function changeOf(
  id: CandidateId, state: CircuitChange['state'], { first, last }: CircuitCause, failures: number, clock: HealthOptions['clock'],
): CircuitChange {
  const [upstream, model] = candidateOf(id)
  return { at: clock.wall(), upstream, model: model === '' ? null : model, state, failures, first, last }
}
