import type { Target } from '../config/types.ts'

/** How an attempt failed, as far as it bears on where to go next. */
export interface RetryInput {
  /** Another attempt may fare better. */
  readonly retryable: boolean
  /** So may one at the same candidate: it was not silent, and nothing is wrong with its credential. */
  readonly again: boolean
  /** And soon, whoever else is left: it was an accident, or has told when to come back. */
  readonly soon: boolean
  /** Milliseconds for which it asked to be left alone, or null. */
  readonly retryAfterMs: number | null
}

export interface RetryStep {
  readonly target: Target
  /** Milliseconds to wait before. */
  readonly delayMs: number
}

export interface RetryContext {
  /** On the monotonic clock, milliseconds. */
  readonly now: number
  /** Milliseconds of the total timeout that are left. */
  readonly timeLeft: number
  /** Between 0 and 1. */
  readonly random: number
}

/** Milliseconds that are waited for a candidate which asks for it, when there is no other. */
const MAX_WAIT = 5_000
/** The same when there are others. */
const MAX_WAIT_WITH_OTHERS = 3_000
const FIRST_BACKOFF = 100
const MAX_BACKOFF = 2_000

interface CandidateEntry {
  readonly target: Target
  attempts: number
  /** On the monotonic clock: not to be asked before. */
  notBefore: number
  /** It was not well before this request: it is not asked twice. */
  readonly wasUnhealthy: boolean
  excluded: boolean
}

/**
 * The way of one request along its candidates: each of them once, in their order;
 * then, while attempts are left, again those for which that can help, the one
 * that may be asked soonest first. Where there are more attempts than candidates,
 * one that failed by accident is asked once more before the next.
 */
export class CandidateState {
  #candidates: CandidateEntry[]
  #current: CandidateEntry
  #attemptsLeft: number

  /**
   * @param order at least one
   * @param retries attempts after the first
   * @param isIll which of them are known to fail: each is asked once, so that
   *   retries do not multiply an outage
   */
  constructor(order: readonly Target[], retries: number, isIll: (target: Target) => boolean = noTarget) {
    // Where none can be asked twice, nobody has to know.
    const isSpare = retries >= order.length
    this.#candidates = order.map(target => createEntry(target, isSpare && isIll(target)))
    this.#current = this.#candidates[0] as CandidateEntry
    this.#current.attempts = 1
    this.#attemptsLeft = retries
  }

  get current(): Target {
    return this.#current.target
  }

  /** Attempts that are still allowed. */
  get attemptsLeft(): number {
    return this.#attemptsLeft
  }

  /**
   * The attempt at the current candidate failed.
   *
   * @param suits which candidates can be of use now
   * @returns where to go next; null = nowhere
   */
  next(
    setback: RetryInput, moment: RetryContext, suits: (target: Target) => boolean = anyTarget,
  ): RetryStep | null {
    const { timeLeft, random } = moment
    // Of parts of milliseconds a sum less one of its terms may be a hair more than the other.
    const now = Math.floor(moment.now)
    const failed = this.#current
    if (!setback.again || failed.wasUnhealthy) failed.excluded = true
    // Who says "at once" is not taken at the word.
    failed.notBefore = now + (setback.retryAfterMs || backoff(failed.attempts, random))
    if (!setback.retryable || this.#attemptsLeft <= 0) return null
    const left = this.#candidates.filter(({ target, excluded }) => !excluded && suits(target))
    const fresh = left.filter(({ attempts: tries }) => tries === 0)
    const wait = failed.notBefore - now
    const isSpare = this.#attemptsLeft > fresh.length && failed.attempts === 1 && left.includes(failed)
    if (setback.soon && isSpare && wait <= MAX_WAIT_WITH_OTHERS && wait < timeLeft) return this.#moveTo(failed, wait)
    if (fresh[0]) return this.#moveTo(fresh[0], 0)
    const [soonest] = left.sort((a, b) => a.notBefore - b.notBefore)
    if (!soonest) return null
    const delayMs = Math.max(0, soonest.notBefore - now)
    return delayMs > MAX_WAIT || delayMs >= timeLeft ? null : this.#moveTo(soonest, delayMs)
  }

  /** From now on there is no other candidate than this one; going there is no retry. */
  redirect(target: Target): RetryStep {
    this.#candidates = [createEntry(target, false)]
    this.#attemptsLeft++
    return this.#moveTo(this.#candidates[0] as CandidateEntry, 0)
  }

  #moveTo(to: CandidateEntry, delayMs: number): RetryStep {
    this.#current = to
    this.#attemptsLeft--
    to.attempts++
    return { target: to.target, delayMs }
  }
}

function createEntry(target: Target, wasUnhealthy: boolean): CandidateEntry {
  return { target, attempts: 0, notBefore: 0, wasUnhealthy, excluded: false }
}

function anyTarget(): boolean {
  return true
}

function noTarget(): boolean {
  return false
}

/** Exponential, between half and all of it. */
function backoff(tries: number, random: number): number {
  return Math.min(FIRST_BACKOFF * 2 ** (tries - 1), MAX_BACKOFF) * (0.5 + random / 2)
}
