import type { Clock, MonotonicTime } from '../base/clock.ts'
import type { CircuitCause, CircuitFailure, CircuitLog } from './circuit-log.ts'

export interface HealthOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>
  /** Random number from 0 to 1, for the jitter. */
  readonly random: () => number
  /** Called for each circuit that opens or closes. */
  readonly circuits?: CircuitLog
}

/** Failures in a row that open a circuit. */
const FAILURES_TO_OPEN = 3
/** Share of failures that also opens a circuit, once there are enough recent outcomes. */
const FAILURE_RATE_TO_OPEN = 0.5
const WINDOW = 20
/**
 * Milliseconds that a circuit stays open, the first time and at most. The maximum is
 * short, so that a recovered target gets requests again within seconds.
 */
const FIRST_OPEN_MS = 1_000
export const MAX_OPEN_MS = 5_000
/** Milliseconds after a response of the candidate in which hints of other gateways are ignored. */
const HINT_IGNORED_MS = 15_000
/**
 * Milliseconds that a probe delays the next one. A complete response can take minutes to
 * start although the candidate is healthy.
 */
const PROBE_TIMEOUT = 10_000
/** Longest pause that a candidate can request with Retry-After. */
const MAX_RETRY_AFTER = 60_000
/** Weight of the newest first-byte time in its average. */
const NEWEST_WEIGHT = 0.2

export const NO_CAUSE: CircuitCause = { first: null, last: null }
const NO_RETRY_AFTER: { readonly since: MonotonicTime, readonly until: MonotonicTime } = { since: -Infinity, until: 0 }

/** The health of one candidate: its circuit, its latest outcomes, and its speed. */
export class CandidateRecord {
  inFlight = 0
  /** Number of probes without a response yet. */
  probes = 0
  /** Start of the last probe. */
  #probedAt: MonotonicTime = 0
  /** 0 = closed. */
  openUntil: MonotonicTime = 0
  /** When the circuit last opened. */
  openedAt: MonotonicTime = 0
  /** Time of the last success. */
  workedAt: MonotonicTime = -Infinity
  /** The circuit is open only because another gateway said so. */
  isHint = false
  firstByteMs: number | null = null
  measuredAt: MonotonicTime = 0
  /**
   * Failures since the last complete response: a candidate whose responses always break off is unhealthy.
   */
  consecutive = 0
  /** The cause of the `consecutive` failures. */
  cause: CircuitCause = NO_CAUSE
  /** The requested pause: when it was requested, and its end. */
  #retryAfter = NO_RETRY_AFTER
  #openings = 0
  /** The latest outcomes, oldest first; true = failed. */
  readonly #latest: boolean[] = []

  /** Whether failures here opened the circuit; true for half-open too. */
  get isOpen(): boolean {
    return this.openUntil !== 0 && !this.isHint
  }

  hint(ms: number, now: MonotonicTime, failure: CircuitFailure): void {
    // Results of this gateway count more: the network of the other gateway may be broken.
    if (this.isOpen || now - this.workedAt < HINT_IGNORED_MS) return
    if (this.openUntil === 0) this.openedAt = now
    this.isHint = true
    this.openUntil = Math.max(this.openUntil, now + ms)
    this.cause = { first: failure, last: failure }
  }

  /** Whether no probe delays the next one. */
  mayBeProbed(now: MonotonicTime): boolean {
    return this.probes === 0 || now - this.#probedAt >= PROBE_TIMEOUT
  }

  beginProbe(now: MonotonicTime): void {
    this.probes++
    this.#probedAt = now
  }

  /**
   * Closes the circuit after a success of an attempt that began at `since`. A success of an
   * attempt from before a requested pause does not end the pause.
   */
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
    // A failure while the circuit is open comes from an attempt that ran when it opened: it is no new evidence.
    const wasOpen = this.isOpen && this.openUntil > now
    // A failure at this gateway confirms another gateway's hint.
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
    // Wait for 50 to 100 % of the pause, so that gateways do not all probe at once.
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
