import type { MonotonicTime } from '../base/clock.ts'
import type { CandidateRecord, HealthOptions } from './candidate-record.ts'
import { candidateOf } from './candidate.ts'
import type { CandidateId } from './candidate.ts'
import type { CircuitCause, CircuitChange, CircuitFailure } from './circuit-log.ts'

/** The facts about an attempt that explain its failure. */
export interface ObservedAttempt {
  readonly requestId: string
  readonly record: { readonly outcome: string, readonly status?: number, readonly said?: string }
}

/** Prefix of failures before the request was sent. */
const CREDENTIALS = 'credentials: '

/**
 * One running attempt at a candidate. The first call of `succeeded`, `failed` or
 * `abandoned` ends it; later calls do nothing.
 */
export interface HealthReporter {
  /** A good response has started: an open circuit closes. */
  responseStarted(firstByteMs: number): void
  /** The response is complete. */
  succeeded(): void
  /**
   * The candidate failed, before its response or during it.
   *
   * @param retryAfterMs the requested pause, or null
   */
  failed(retryAfterMs: number | null): void
  /** The attempt ended without a failure of the candidate: the client disconnected, or its request was wrong. */
  abandoned(): void
}

/** Reports the end of an attempt to the record of its candidate. */
export class AttemptHealthReporter implements HealthReporter {
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

  responseStarted(firstByteMs: number): void {
    if (this.#over) return
    if (this.#isProbe) this.#endProbe()
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
    // No request was sent, so the reason is complete without a status.
    if (said?.startsWith(CREDENTIALS)) return { at: this.#options.clock.wall(), reason: said, requestId }
    // For an error of the upstream, the status is more precise than the outcome.
    const what = status === undefined || status < 400 ? outcome : `status ${status}`
    return { at: this.#options.clock.wall(), reason: said === undefined ? what : `${what} ${said}`, requestId }
  }

  #endProbe(): void {
    this.#record.probes--
    this.#isProbe = false
  }
}

/** A change of a circuit, for the log. */
export function changeOf(
  id: CandidateId, state: CircuitChange['state'], { first, last }: CircuitCause, failures: number, clock: HealthOptions['clock'],
): CircuitChange {
  const [upstream, model] = candidateOf(id)
  return { at: clock.wall(), upstream, model: model === '' ? null : model, state, failures, first, last }
}
