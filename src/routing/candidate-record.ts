import type { Clock, MonotonicTime } from '../base/clock.ts'
import type { CircuitCause, CircuitFailure, CircuitLog } from './circuit-log.ts'

export interface HealthOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>
  /** Between 0 and 1. */
  readonly random: () => number
  /** Called for each circuit that opens or closes. */
  readonly circuits?: CircuitLog
}

/** Failures in a row that open a circuit. */
const FAILURES_TO_OPEN = 3
/** Or: this share of failures among the latest outcomes, once there are enough of them. */
const FAILURE_RATE_TO_OPEN = 0.5
const WINDOW = 20
/**
 * Milliseconds that a circuit stays open the first time, and at
 * most: a recovered primary is back within seconds.
 */
const FIRST_OPEN_MS = 1_000
export const MAX_OPEN_MS = 5_000
/** Milliseconds after a response of the candidate in which hints of other gateways are ignored. */
const HINT_IGNORED_MS = 15_000
/**
 * Milliseconds that a probe keeps the next one waiting: a response in one piece may
 * take minutes to begin, of a candidate that is well.
 */
const PROBE_TIMEOUT = 10_000
/** What a candidate may ask for at most with Retry-After. */
const MAX_RETRY_AFTER = 60_000
/** Weight of the newest first-byte time in its average. */
const NEWEST_WEIGHT = 0.2

export const NO_CAUSE: CircuitCause = { first: null, last: null }
const NO_RETRY_AFTER: { readonly since: MonotonicTime, readonly until: MonotonicTime } = { since: -Infinity, until: 0 }

/** What is known of one candidate: its circuit, its latest outcomes, and how fast it is. */
export class CandidateRecord {
  inFlight = 0
  /** Those in progress that have no response yet. */
  probes = 0
  /** When the last of them began. */
  #probedAt: MonotonicTime = 0
  /** 0 = closed. */
  openUntil: MonotonicTime = 0
  /** When it opened last. */
  openedAt: MonotonicTime = 0
  /** When it worked last. */
  #workedAt: MonotonicTime = -Infinity
  /** It is open by what another gateway says alone. */
  isHint = false
  firstByteMs: number | null = null
  measuredAt: MonotonicTime = 0
  /**
   * Failures since the last complete response: a candidate whose responses always break off is unhealthy.
   */
  consecutive = 0
  /** Of these failures. */
  cause: CircuitCause = NO_CAUSE
  /** When it asked to be left alone, and until when. */
  #retryAfter = NO_RETRY_AFTER
  #openings = 0
  /** The latest outcomes, oldest first; true = failed. */
  readonly #latest: boolean[] = []

  /** By what failed here; half-open included. */
  get isOpen(): boolean {
    return this.openUntil !== 0 && !this.isHint
  }

  hint(ms: number, now: MonotonicTime, failure: CircuitFailure): void {
    // What was seen here counts for more: the other gateway's way to the candidate may be broken.
    if (this.isOpen || now - this.#workedAt < HINT_IGNORED_MS) return
    if (this.openUntil === 0) this.openedAt = now
    this.isHint = true
    this.openUntil = Math.max(this.openUntil, now + ms)
    this.cause = { first: failure, last: failure }
  }

  /** Does no probe keep the next one waiting? */
  mayBeProbed(now: MonotonicTime): boolean {
    return this.probes === 0 || now - this.#probedAt >= PROBE_TIMEOUT
  }

  beginProbe(now: MonotonicTime): void {
    this.probes++
    this.#probedAt = now
  }

  /**
   * It is well as far as something says that began at `since`: what it was asked before
   * says nothing of how long it wants to be left alone.
   */
  close(since: MonotonicTime, now: MonotonicTime): void {
    const { since: askedAt, until } = this.#retryAfter
    const isOlder = since < askedAt
    if (!isOlder) this.#retryAfter = NO_RETRY_AFTER
    this.openUntil = isOlder && until > now ? until : 0
    this.isHint = false
    this.#workedAt = now
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
    // What was in progress when the circuit opened says nothing new of it.
    const wasOpen = this.isOpen && this.openUntil > now
    // Where it was open by a hint, that is confirmed.
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
    // Between half and all of it, so that many gateways do not come back at the same moment.
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
