import type { MonotonicTime } from '../base/clock.ts'
import { CandidateRecord, HealthReporter, MAX_OPEN_MS, NO_CAUSE, changeOf } from './circuit.ts'
import type { HealthOptions, ObservedAttempt } from './circuit.ts'
import { candidateOf, withoutModel, type CandidateId } from './candidate.ts'
import type { CircuitCause, CircuitChange, CircuitFailure } from './circuit-log.ts'

export interface CandidateHealth {
  readonly circuit: 'closed' | 'open' | 'probing'
  /** Milliseconds until an open circuit allows a probe; 0 = closed; Infinity = the circuit is open until a health check succeeds. */
  readonly opensIn: number
  /** Milliseconds since the circuit opened, including the half-open state; null = closed. */
  readonly openForMs: number | null
  readonly inFlight: number
  /** Moving average of the time to the first byte, ms; null = no response yet. */
  readonly firstByteMs: number | null
  /** `firstByteMs`, lowered with its age, so that a candidate that was slow once gets another request. */
  readonly expectedMs: number | null
  readonly consecutiveFailures: number
  /** The circuit is open only because another gateway has reported a failure. */
  readonly isHint: boolean
}

interface FailingChecks {
  /** Consecutive failures. */
  readonly count: number
  readonly since: MonotonicTime
  readonly cause: CircuitCause
}

/** Number of consecutive failed checks after which the upstream is unhealthy. */
const CHECK_FAILURES_TO_OPEN = 2
/** Milliseconds that a hint lasts longer, so that the result of the other gateway's probe can arrive. */
const HINT_GRACE_MS = 1_500
/** Milliseconds in which `expectedMs` halves if no new value arrives. */
const HALF_LIFE = 30_000
/** Maximum healthy candidates in memory. Limited, because clients choose the names of models. */
const MAX_HEALTHY_RECORDS = 4_096

/**
 * Keeps a circuit for each candidate. Failures open the circuit for a growing, jittered time, and one successful probe closes it.
 * Source of the pattern: M. Nygard, "Release It!", Circuit Breaker.
 */
export class Health {
  readonly #options: HealthOptions
  readonly #records = new Map<CandidateId, CandidateRecord>()
  /** Failing checks by upstream. */
  readonly #failing = new Map<string, FailingChecks>()
  /** At this number of records, records of healthy, idle candidates are removed. */
  #sweepAt = MAX_HEALTHY_RECORDS

  constructor(options: HealthOptions) {
    this.#options = options
  }

  condition(id: CandidateId): CandidateHealth {
    const record = this.#records.get(id)
    const isDown = this.#isDown(id)
    const now = this.#options.clock.monotonic()
    const downFor = isDown ? now - (this.#failing.get(candidateOf(id)[0])?.since ?? now) : null
    if (!record) return isDown ? { ...UNKNOWN, circuit: 'open', opensIn: Infinity, openForMs: downFor } : UNKNOWN
    const opensIn = isDown ? Infinity : Math.max(0, record.openUntil - now)
    const circuit = isDown ? 'open' : record.openUntil === 0 ? 'closed' : record.probes > 0 ? 'probing' : 'open'
    return {
      circuit,
      opensIn: circuit === 'open' ? opensIn : 0,
      openForMs: record.openUntil === 0 ? downFor : now - record.openedAt,
      inFlight: record.inFlight,
      firstByteMs: record.firstByteMs,
      expectedMs: record.firstByteMs === null ? null : record.firstByteMs * 2 ** ((record.measuredAt - now) / HALF_LIFE),
      consecutiveFailures: record.consecutive,
      isHint: record.isHint,
    }
  }

  /**
   * Opens the circuit for a few seconds, because another gateway has opened its circuit. Then one request probes the candidate, so that a
   * wrong hint excludes no candidate for long. @param ms until the other gateway probes @param from name of the other gateway
   */
  hint(id: CandidateId, ms: number, from: string): void {
    const { clock } = this.#options
    const record = this.#records.get(id) ?? this.#createRecord(id)
    record.hint(Math.min(ms, MAX_OPEN_MS) + HINT_GRACE_MS, clock.monotonic(), { at: clock.wall(), reason: `reported by ${from}`, requestId: null })
  }

  /** All candidates that had attempts, and the unhealthy upstreams that had none. */
  conditions(): [id: CandidateId, condition: CandidateHealth][] {
    const ids = [...this.#records.keys()]
    const asked = new Set(ids.map(id => candidateOf(id)[0]))
    const unasked = [...this.#failing.keys()].filter(name => !asked.has(name)).map(withoutModel)
    return [...ids, ...unasked.filter(id => this.#isDown(id))].map(id => [id, this.condition(id)])
  }

  /** @returns true = the candidate may get a request now. After its pause, an open circuit allows one probe at a time */
  allows(id: CandidateId): boolean {
    if (this.#isDown(id)) return false
    const record = this.#records.get(id)
    if (!record || record.openUntil === 0) return true
    const now = this.#options.clock.monotonic()
    return now >= record.openUntil && record.mayBeProbed(now)
  }

  /** The failures since the last success, which may have opened the circuit. */
  causeOf(id: CandidateId): CircuitCause {
    const cause = this.#records.get(id)?.cause ?? NO_CAUSE
    const checks = this.#isDown(id) ? this.#failing.get(candidateOf(id)[0])?.cause : undefined
    if (checks === undefined) return cause
    const isNewer = cause.last !== null && checks.last !== null && cause.last.at > checks.last.at
    return { first: earlier(cause.first, checks.first), last: isNewer ? cause.last : checks.last }
  }

  begin(id: CandidateId, attempt: ObservedAttempt | null = null): HealthReporter {
    const record = this.#records.get(id) ?? this.#createRecord(id)
    record.inFlight++
    return new HealthReporter(id, record, this.#options, attempt)
  }

  /** Makes the upstream unhealthy from the second consecutive failed check until a check succeeds. @returns true = healthy */
  recordCheck(upstream: string, isHealthy: boolean, why = 'failed'): boolean {
    const { clock } = this.#options
    if (!isHealthy) {
      const failure = { at: clock.wall(), reason: `health check: ${why}`, requestId: null }
      const { count, since, cause: { first } } = this.#failing.get(upstream) ?? { count: 0, since: clock.monotonic(), cause: NO_CAUSE }
      const failing = { count: count + 1, since, cause: { first: first ?? this.#firstFailure(upstream, failure), last: failure } }
      this.#failing.set(upstream, failing)
      if (failing.count === CHECK_FAILURES_TO_OPEN) this.#report(withoutModel(upstream), 'open', failing.cause, failing.count)
      return !this.failsChecks(upstream)
    }
    this.clearChecks(upstream)
    const now = clock.monotonic()
    // A successful check does not end a pause that the upstream requested, because the upstream may still refuse requests.
    for (const [id, record] of this.#records) {
      if (candidateOf(id)[0] !== upstream) continue
      const wasOpen = record.isOpen
      record.close(-Infinity, now)
      if (wasOpen && !record.isOpen) this.#report(id, 'closed', record.cause, record.consecutive)
    }
    return true
  }

  /** @returns true = the upstream is unhealthy by its health checks */
  failsChecks(upstream: string): boolean {
    return (this.#failing.get(upstream)?.count ?? 0) >= CHECK_FAILURES_TO_OPEN
  }

  /** Forgets the results of checks. Called when the upstream no longer has health checks. */
  clearChecks(upstream: string): void {
    const failing = this.#failing.get(upstream)
    if (this.failsChecks(upstream) && failing) this.#report(withoutModel(upstream), 'closed', failing.cause, failing.count)
    this.#failing.delete(upstream)
  }

  /** Forgets the health of an upstream. Called when a reload replaces the upstream. */
  forget(upstream: string): void {
    this.clearChecks(upstream)
    for (const [id, record] of this.#records) {
      if (candidateOf(id)[0] !== upstream) continue
      if (record.isOpen) this.#report(id, 'closed', record.cause, record.consecutive)
      this.#records.delete(id)
    }
  }

  #report(id: CandidateId, state: CircuitChange['state'], cause: CircuitCause, failures: number): void {
    this.#options.circuits?.add(changeOf(id, state, cause, failures, this.#options.clock))
  }

  /** @returns the first failure since the last success at the upstream: the failed check, or an earlier failure of a request */
  #firstFailure(upstream: string, check: CircuitFailure): CircuitFailure {
    const { clock } = this.#options
    const records = [...this.#records].flatMap(([id, record]) => (candidateOf(id)[0] === upstream ? [record] : []))
    const workedAgo = clock.monotonic() - Math.max(...records.map(({ workedAt }) => workedAt))
    const worked = clock.wall() - workedAgo
    return records.reduce((first, { cause }) => (cause.first !== null && cause.first.at >= worked ? earlier(cause.first, first) : first), check)
  }

  #isDown(id: CandidateId): boolean {
    return this.#failing.size > 0 && this.failsChecks(candidateOf(id)[0])
  }

  #createRecord(id: CandidateId): CandidateRecord {
    if (this.#records.size >= this.#sweepAt) {
      const now = this.#options.clock.monotonic()
      for (const [known, { inFlight, openUntil }] of this.#records) {
        if (inFlight === 0 && openUntil <= now) this.#records.delete(known)
      }
      // Sweep next at twice the number, so that a sweep that removes little is not repeated for each new record.
      this.#sweepAt = Math.max(MAX_HEALTHY_RECORDS, this.#records.size * 2)
    }
    const record = new CandidateRecord()
    this.#records.set(id, record)
    return record
  }
}

function earlier<T extends CircuitFailure | null>(one: T, other: T): T {
  if (one === null || other === null) return one ?? other
  return one.at <= other.at ? one : other
}

const UNKNOWN: CandidateHealth = {
  circuit: 'closed', opensIn: 0, openForMs: null, inFlight: 0, firstByteMs: null, expectedMs: null,
  consecutiveFailures: 0, isHint: false,
}
