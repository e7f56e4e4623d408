import type { Clock } from '../base/clock.ts'
import { candidateOf, withoutModel } from './candidate.ts'
import type { CandidateId } from './candidate.ts'
import type { CircuitCause, CircuitChange, CircuitFailure, CircuitLog } from './circuit-log.ts'

export interface HealthOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'wall'>
  /** Between 0 and 1. */
  readonly random: () => number
  /** Told of each circuit that opens or closes. */
  readonly circuits?: CircuitLog
}

/** What an attempt tells of its failure, once it has failed. */
export interface ObservedAttempt {
  readonly requestId: string
  readonly record: { readonly outcome: string, readonly status?: number, readonly said?: string }
}

/** What failed before the request was sent. */
const CREDENTIALS = 'credentials: '
const NO_CAUSE: CircuitCause = { first: null, last: null }

/** What is known of one candidate, for the status page and the choosing. */
export interface CandidateHealth {
  readonly circuit: 'closed' | 'open' | 'probing'
  /** Milliseconds until an open circuit lets a probe through; Infinity = a check decides; 0 otherwise. */
  readonly opensIn: number
  /** Milliseconds since the circuit opened, probes included; null while it is closed. */
  readonly openForMs: number | null
  readonly inFlight: number
  /** Moving average of the time to the first byte, milliseconds; null before the first response. */
  readonly firstByteMs: number | null
  /** The same, less the longer nobody has measured it: what was slow once gets another try. */
  readonly expectedMs: number | null
  readonly consecutiveFailures: number
  /** The circuit is open because another gateway says so, and nothing failed here. */
  readonly isHint: boolean
}

/**
 * One attempt that is under way at a candidate. It ends by `succeeded`, `failed`
 * or `abandoned`; what comes later does nothing.
 */
export interface HealthReporter {
  /** The response has begun, and it is a good one: an open circuit closes. */
  responseStarted(firstByteMs: number): void
  /** The response came to its end. */
  succeeded(): void
  /**
   * It failed by the candidate's fault, before a response or in the middle of it.
   *
   * @param retryAfterMs how long it asked to be left alone, or null
   */
  failed(retryAfterMs: number | null): void
  /** It ended through nobody's fault at the candidate: the client left, or its request was wrong. */
  abandoned(): void
}

/** Failures in a row that open a circuit. */
const FAILURES_TO_OPEN = 3
/** Checks in a row that an upstream has to fail. */
const CHECK_FAILURES_TO_OPEN = 2
/** Or: this share of failures among the latest outcomes, once there are enough of them. */
const FAILURE_RATE_TO_OPEN = 0.5
const WINDOW = 20
/**
 * Milliseconds that a circuit stays open the first time, and at
 * most: a recovered primary is back within seconds.
 */
const FIRST_OPEN_MS = 1_000
const MAX_OPEN_MS = 5_000
/** Milliseconds after a response of the candidate in which hints of other gateways are ignored. */
const HINT_IGNORED_MS = 15_000
/** Milliseconds for the result of the other gateway's probe to arrive. */
const HINT_GRACE_MS = 1_500
/**
 * Milliseconds that a probe keeps the next one waiting: a response in one piece may
 * take minutes to begin, of a candidate that is well.
 */
const PROBE_TIMEOUT = 10_000
/** What a candidate may ask for at most with Retry-After. */
const MAX_RETRY_AFTER = 60_000
/** Weight of the newest first-byte time in its average. */
const NEWEST_WEIGHT = 0.2
/** Milliseconds in which an average that nobody renews loses half of its weight. */
const HALF_LIFE = 30_000
/**
 * Candidates that are remembered though they are well; clients
 * choose the names of models, and there is no end of names.
 */
const MAX_HEALTHY_RECORDS = 4_096

/**
 * Passive health: a circuit for each candidate, closed while it answers, open for
 * a growing, jittered time when it fails, closed again by one successful probe.
 *
 * Source of the pattern: M. Nygard, "Release It!", Circuit Breaker.
 */
export class Health {
  readonly #options: HealthOptions
  readonly #records = new Map<CandidateId, CandidateRecord>()
  /** Upstreams that fail their checks: how often in a row, and since when on the monotonic clock. */
  readonly #failing = new Map<string, { readonly count: number; readonly since: number } & CircuitCause>()
  /** The number of records at which those are forgotten that say nothing any more. */
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
      expectedMs: record.firstByteMs === null
        ? null
        : record.firstByteMs * 2 ** ((record.measuredAt - now) / HALF_LIFE),
      consecutiveFailures: record.consecutive,
      isHint: record.isHint,
    }
  }

  /**
   * Another gateway has opened this circuit. It opens here too, for a few seconds at most: other candidates are asked
   * first, and then one request finds out. So a wrong hint delays a request, and keeps none out.
   *
   * @param ms until the other gateway asks the candidate again
   * @param from the name of that gateway
   */
  hint(id: CandidateId, ms: number, from: string): void {
    const { clock } = this.#options
    const record = this.#records.get(id) ?? this.#createRecord(id)
    record.hint(Math.min(ms, MAX_OPEN_MS) + HINT_GRACE_MS, clock.monotonic(), { at: clock.wall(), reason: `reported by ${from}`, requestId: null })
  }

  /** For the status: every candidate that was asked, and upstreams that fail their checks before any was. */
  conditions(): [id: CandidateId, condition: CandidateHealth][] {
    const ids = [...this.#records.keys()]
    const asked = new Set(ids.map(id => candidateOf(id)[0]))
    const unasked = [...this.#failing.keys()].filter(name => !asked.has(name)).map(withoutModel)
    return [...ids, ...unasked.filter(id => this.#isDown(id))].map(id => [id, this.condition(id)])
  }

  /** May it be asked now? An open circuit lets one probe after the other through when its time is up. */
  allows(id: CandidateId): boolean {
    if (this.#isDown(id)) return false
    const record = this.#records.get(id)
    if (!record || record.openUntil === 0) return true
    const now = this.#options.clock.monotonic()
    return now >= record.openUntil && record.mayBeProbed(now)
  }

  /** Why its circuit is open, or what failed since it worked. */
  causeOf(id: CandidateId): CircuitCause {
    const checks = this.#isDown(id) ? this.#failing.get(candidateOf(id)[0]) : undefined
    return checks ?? this.#records.get(id)?.cause ?? NO_CAUSE
  }

  /** An attempt at the candidate begins. */
  begin(id: CandidateId, attempt: ObservedAttempt | null = null): HealthReporter {
    const record = this.#records.get(id) ?? this.#createRecord(id)
    record.inFlight++
    return new AttemptHealthReporter(id, record, this.#options, attempt)
  }

  /**
   * An upstream was asked whether it is well. Its circuits are open from the
   * second no in a row on, until the first yes.
   *
   * @param why it is not
   * @returns whether it is taken to be well
   */
  recordCheck(upstream: string, isHealthy: boolean, why = 'failed'): boolean {
    const { clock } = this.#options
    if (!isHealthy) {
      const failure = { at: clock.wall(), reason: `health check: ${why}`, requestId: null }
      const { count, since, first } = this.#failing.get(upstream) ?? { count: 0, since: clock.monotonic(), first: failure }
      const failing = { count: count + 1, since, first, last: failure }
      this.#failing.set(upstream, failing)
      if (failing.count === CHECK_FAILURES_TO_OPEN) this.#report(withoutModel(upstream), 'open', failing, failing.count)
      return !this.failsChecks(upstream)
    }
    this.clearChecks(upstream)
    const now = clock.monotonic()
    // That it is there does not tell that it takes requests.
    for (const [id, record] of this.#records) {
      if (candidateOf(id)[0] !== upstream) continue
      const wasOpen = record.isOpen
      record.close(-Infinity, now)
      if (wasOpen && !record.isOpen) this.#report(id, 'closed', record.cause, record.consecutive)
    }
    return true
  }

  /** Is it taken not to be well, by its checks? */
  failsChecks(upstream: string): boolean {
    return (this.#failing.get(upstream)?.count ?? 0) >= CHECK_FAILURES_TO_OPEN
  }

  /** The upstream is checked no more: what its last checks said is forgotten. */
  clearChecks(upstream: string): void {
    const failing = this.#failing.get(upstream)
    if (this.failsChecks(upstream) && failing) this.#report(withoutModel(upstream), 'closed', failing, failing.count)
    this.#failing.delete(upstream)
  }

  /** The upstream is another one from now on: nothing is known of it. */
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

  #isDown(id: CandidateId): boolean {
    return this.#failing.size > 0 && this.failsChecks(candidateOf(id)[0])
  }

  #createRecord(id: CandidateId): CandidateRecord {
    if (this.#records.size >= this.#sweepAt) {
      const now = this.#options.clock.monotonic()
      for (const [known, { inFlight, openUntil }] of this.#records) {
        if (inFlight === 0 && openUntil <= now) this.#records.delete(known)
      }
      // Where little could be forgotten, looking again at each new name would cost more than the names.
      this.#sweepAt = Math.max(MAX_HEALTHY_RECORDS, this.#records.size * 2)
    }
    const record = new CandidateRecord()
    this.#records.set(id, record)
    return record
  }
}

function changeOf(
  id: CandidateId, state: CircuitChange['state'], { first, last }: CircuitCause, failures: number, clock: HealthOptions['clock'],
): CircuitChange {
  const [upstream, model] = candidateOf(id)
  return { at: clock.wall(), upstream, model: model === '' ? null : model, state, failures, first, last }
}

class AttemptHealthReporter implements HealthReporter {
  readonly #id: CandidateId
  readonly #record: CandidateRecord
  readonly #options: HealthOptions
  readonly #attempt: ObservedAttempt | null
  /** On the monotonic clock. */
  readonly #beganAt: number
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

  responseStarted(firstByteMs: number): void {
    if (this.#over) return
    this.#endProbe()
    const now = this.#options.clock.monotonic()
    this.#close(now)
    this.#record.recordFirstByte(firstByteMs, now)
  }

  succeeded(): void {
    if (!this.#end()) return
    this.#close(this.#options.clock.monotonic())
    this.#record.success()
  }

  failed(coolMs: number | null): void {
    if (!this.#end()) return
    const wasOpen = this.#record.isOpen
    this.#record.failure(coolMs, this.#options, this.#failure())
    if (!wasOpen && this.#record.isOpen) this.#report('open')
  }

  abandoned(): void {
    this.#end()
  }

  #end(): boolean {
    if (this.#over) return false
    this.#over = true
    this.#record.inFlight--
    this.#endProbe()
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
    // It says all that there is to say: nothing was sent.
    if (said?.startsWith(CREDENTIALS)) return { at: this.#options.clock.wall(), reason: said, requestId }
    // With an error of the upstream's own, its status tells more than the outcome.
    const what = status === undefined || status < 400 ? outcome : `status ${status}`
    return { at: this.#options.clock.wall(), reason: said === undefined ? what : `${what} ${said}`, requestId }
  }

  #endProbe(): void {
    if (this.#isProbe) this.#record.probes--
    this.#isProbe = false
  }
}

const NO_RETRY_AFTER = { since: -Infinity, until: 0 }

class CandidateRecord {
  inFlight = 0
  /** Those under way that have no response yet. */
  probes = 0
  /** On the monotonic clock: when the last of them began. */
  #probedAt = 0
  /** On the monotonic clock; 0 = closed. */
  openUntil = 0
  /** On the monotonic clock: when it opened last. */
  openedAt = 0
  /** On the monotonic clock: when it worked last. */
  #workedAt = -Infinity
  /** It is open by what another gateway says alone. */
  isHint = false
  firstByteMs: number | null = null
  /** On the monotonic clock. */
  measuredAt = 0
  /**
   * Failures since the last answer that came to its end: one that
   * always breaks off in the middle is not well.
   */
  consecutive = 0
  /** Of these failures. */
  cause: CircuitCause = NO_CAUSE
  /** On the monotonic clock: when it asked to be left alone, and until when. */
  #retryAfter = NO_RETRY_AFTER
  #openings = 0
  /** The latest outcomes, oldest first; true = failed. */
  readonly #latest: boolean[] = []

  /** By what failed here; half-open included. */
  get isOpen(): boolean {
    return this.openUntil !== 0 && !this.isHint
  }

  hint(ms: number, now: number, failure: CircuitFailure): void {
    // What was seen here counts for more: the other gateway's way to the candidate may be broken.
    if (this.isOpen || now - this.#workedAt < HINT_IGNORED_MS) return
    if (this.openUntil === 0) this.openedAt = now
    this.isHint = true
    this.openUntil = Math.max(this.openUntil, now + ms)
    this.cause = { first: failure, last: failure }
  }

  /** Does no probe keep the next one waiting? */
  mayBeProbed(now: number): boolean {
    return this.probes === 0 || now - this.#probedAt >= PROBE_TIMEOUT
  }

  beginProbe(now: number): void {
    this.probes++
    this.#probedAt = now
  }

  /**
   * It is well as far as something says that began at `since`: what it was asked before
   * says nothing of how long it wants to be left alone.
   */
  close(since: number, now: number): void {
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

  recordFirstByte(ms: number, now: number): void {
    this.measuredAt = now
    this.firstByteMs = this.firstByteMs === null ? ms : this.firstByteMs + NEWEST_WEIGHT * (ms - this.firstByteMs)
  }

  failure(coolMs: number | null, { clock, random }: HealthOptions, failure: CircuitFailure | null): void {
    this.consecutive++
    this.cause = { first: this.isHint ? failure : this.cause.first ?? failure, last: failure }
    this.#note(true)
    const now = clock.monotonic()
    // What was under way when the circuit opened says nothing new of it.
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

const UNKNOWN: CandidateHealth = {
  circuit: 'closed', opensIn: 0, openForMs: null, inFlight: 0, firstByteMs: null, expectedMs: null,
  consecutiveFailures: 0, isHint: false,
}
