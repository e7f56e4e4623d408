import type { Clock } from '../clock.ts'

/** A candidate as health sees it: one model at one upstream. */
export type CandidateId = string

export interface HealthOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  /** Between 0 and 1. */
  readonly random: () => number
}

/** What is known of one candidate, for the status page and the choosing. */
export interface Condition {
  readonly circuit: 'closed' | 'open' | 'probing'
  /** Milliseconds until an open circuit lets a probe through; 0 otherwise. */
  readonly opensIn: number
  readonly inFlight: number
  /** Moving average of the time to the first byte, milliseconds; null before the first answer. */
  readonly firstByteMs: number | null
  readonly consecutiveFailures: number
}

/** One attempt that is under way at a candidate; it ends by exactly one of its methods, later calls do nothing. */
export interface Trial {
  /** It answered. @param firstByteMs null when no body came */
  succeeded(firstByteMs: number | null): void
  /** It failed by its own fault. @param coolMs how long it asked to be left alone, or null */
  failed(coolMs: number | null): void
  /** It ended through nobody's fault at the upstream: the client left, or its request was wrong. */
  abandoned(): void
}

/** Failures in a row that open a circuit. */
const CONSECUTIVE = 5
/** Or: this share of failures among the latest outcomes, once there are enough of them. */
const RATE = 0.5
const WINDOW = 20
/** Milliseconds that a circuit stays open the first time, and at most: a recovered primary is back within seconds. */
const FIRST_PAUSE = 1_000
const LONGEST_PAUSE = 15_000
/** What an upstream may ask for at most with Retry-After. */
const LONGEST_COOL = 60_000
/** Weight of the newest first-byte time in its average. */
const NEWEST = 0.2

/**
 * Passive health: a circuit for each candidate, closed while it answers, open for
 * a growing, jittered time when it fails, closed again by one successful probe.
 *
 * Source of the pattern: M. Nygard, "Release It!", Circuit Breaker.
 */
export class Health {
  readonly #options: HealthOptions
  readonly #records = new Map<CandidateId, CandidateRecord>()

  constructor(options: HealthOptions) {
    this.#options = options
  }

  condition(id: CandidateId): Condition {
    const record = this.#records.get(id)
    if (!record) return UNKNOWN
    const opensIn = Math.max(0, record.openUntil - this.#options.clock.monotonic())
    const circuit = record.openUntil === 0 ? 'closed' : record.probing ? 'probing' : 'open'
    return {
      circuit,
      opensIn: circuit === 'open' ? opensIn : 0,
      inFlight: record.inFlight,
      firstByteMs: record.firstByteMs,
      consecutiveFailures: record.consecutive,
    }
  }

  /** May it be asked now? An open circuit lets one probe through when its time is up. */
  allows(id: CandidateId): boolean {
    const record = this.#records.get(id)
    if (!record || record.openUntil === 0) return true
    return !record.probing && this.#options.clock.monotonic() >= record.openUntil
  }

  /** An attempt at the candidate begins. */
  begin(id: CandidateId): Trial {
    let record = this.#records.get(id)
    if (!record) this.#records.set(id, (record = new CandidateRecord()))
    const { inFlight } = record
    record.inFlight = inFlight + 1
    const probe = record.openUntil !== 0 && !record.probing
    if (probe) record.probing = true
    return this.#trial(record, probe)
  }

  #trial(record: CandidateRecord, probe: boolean): Trial {
    let over = false
    const end = (then: () => void) => {
      if (over) return
      over = true
      record.inFlight--
      if (probe) record.probing = false
      then()
    }
    return {
      succeeded: firstByteMs => end(() => record.success(firstByteMs)),
      failed: coolMs => end(() => record.failure(coolMs, this.#options)),
      abandoned: () => end(() => {}),
    }
  }
}

class CandidateRecord {
  inFlight = 0
  probing = false
  /** On the monotonic clock; 0 = closed. */
  openUntil = 0
  firstByteMs: number | null = null
  consecutive = 0
  #openings = 0
  /** The latest outcomes, oldest first; true = failed. */
  readonly #latest: boolean[] = []

  success(firstByteMs: number | null): void {
    this.consecutive = 0
    if (this.openUntil !== 0) {
      this.openUntil = 0
      this.#latest.length = 0
    }
    this.#openings = 0
    this.#note(false)
    if (firstByteMs === null) return
    this.firstByteMs = this.firstByteMs === null ? firstByteMs : this.firstByteMs + NEWEST * (firstByteMs - this.firstByteMs)
  }

  failure(coolMs: number | null, { clock, random }: HealthOptions): void {
    this.consecutive++
    this.#note(true)
    const now = clock.monotonic()
    if (coolMs !== null) this.openUntil = Math.max(this.openUntil, now + Math.min(coolMs, LONGEST_COOL))
    if (this.openUntil === 0 && !this.#tripped()) return
    const pause = Math.min(FIRST_PAUSE * 2 ** this.#openings, LONGEST_PAUSE)
    this.#openings++
    // Between half and all of it, so that many gateways do not come back at the same moment.
    this.openUntil = Math.max(this.openUntil, now + pause * (0.5 + random() / 2))
  }

  #tripped(): boolean {
    if (this.consecutive >= CONSECUTIVE) return true
    return this.#latest.length >= WINDOW && this.#latest.filter(Boolean).length >= WINDOW * RATE
  }

  #note(failed: boolean): void {
    this.#latest.push(failed)
    if (this.#latest.length > WINDOW) this.#latest.shift()
  }
}

const UNKNOWN: Condition = {
  circuit: 'closed', opensIn: 0, inFlight: 0, firstByteMs: null, consecutiveFailures: 0,
}
