import type { Target } from '../config/types.ts'

/** The properties of a failed attempt that decide the next step. */
export interface FailedAttempt {
  readonly retryable: boolean
  /** false = do not try the same target again: after a timeout, and after 401, 402 and 403. */
  readonly sameTargetAllowed: boolean
  /** true = the failure is transient, so the same target is tried before the other targets. */
  readonly sameTargetFirst: boolean
  /** The wait that the upstream requested, ms. */
  readonly retryAfterMs: number | null
}

export interface RetryStep {
  readonly target: Target
  /** Milliseconds to wait before the attempt. */
  readonly delayMs: number
}

export interface RetryContext {
  /** Milliseconds on the monotonic clock. */
  readonly now: number
  /** Milliseconds until the total timeout. */
  readonly timeLeft: number
  /** Random number from 0 to 1, for the jitter. */
  readonly random: number
}

/** The targets that a request has tried and can try. */
export interface RetryState {
  readonly candidates: readonly Candidate[]
  /** The candidate of the current attempt. */
  readonly current: Candidate
  readonly attemptsLeft: number
}

interface Candidate {
  readonly target: Target
  readonly attempts: number
  /** The candidate is not tried before this time; ms on the monotonic clock. */
  readonly notBefore: number
  /** true = the candidate was unhealthy when the request began, so it is tried only once. */
  readonly wasUnhealthy: boolean
  readonly excluded: boolean
}

/** `step` null = no further attempt. */
export interface Decision {
  readonly state: RetryState
  readonly step: RetryStep | null
}

/** Longest wait for a candidate if no other candidate remains, ms. */
const MAX_WAIT = 5_000
/** Longest wait for a candidate if other candidates remain, ms. */
const MAX_WAIT_WITH_OTHERS = 3_000
const FIRST_BACKOFF = 100
const MAX_BACKOFF = 2_000

/**
 * The state before the first attempt. @param order at least one target @param retries maximum attempts after the first attempt
 * @param isUnhealthy unhealthy targets are tried only once, so that retries do not add to the load of a failing upstream
 */
export function startRetries(
  order: readonly Target[], retries: number, isUnhealthy: (target: Target) => boolean = () => false,
): RetryState {
  // If there are no more attempts than targets, no target is tried twice, and health does not matter.
  const hasSpare = retries >= order.length
  const [first, ...others] = order.map(target => newCandidate(target, hasSpare && isUnhealthy(target)))
  const current = { ...first as Candidate, attempts: 1 }
  return { candidates: [current, ...others], current, attemptsLeft: retries }
}

/**
 * Tries each candidate once, in order. Then tries candidates again, first the one that is available soonest. If more attempts than untried
 * candidates are left, a candidate with a transient failure is tried again first. @param suits false = the target cannot be used now
 */
export function nextAttempt(
  before: RetryState, failure: FailedAttempt, { now: time, timeLeft, random }: RetryContext,
  suits: (target: Target) => boolean = () => true,
): Decision {
  const now = wholeMs(time)
  const failed = afterFailure(before.current, failure, now, random)
  const state = replace(before, failed)
  if (!failure.retryable || state.attemptsLeft <= 0) return { state, step: null }
  const left = state.candidates.filter(({ target, excluded }) => !excluded && suits(target))
  const fresh = left.filter(({ attempts }) => attempts === 0)
  const wait = failed.notBefore - now
  const hasSpare = state.attemptsLeft > fresh.length && failed.attempts === 1 && left.includes(failed)
  if (failure.sameTargetFirst && hasSpare && wait <= MAX_WAIT_WITH_OTHERS && wait < timeLeft) return moveTo(state, failed, wait)
  if (fresh[0]) return moveTo(state, fresh[0], 0)
  const [earliest] = left.toSorted((a, b) => a.notBefore - b.notBefore)
  if (!earliest) return { state, step: null }
  const delayMs = Math.max(0, earliest.notBefore - now)
  return delayMs > MAX_WAIT || delayMs >= timeLeft ? { state, step: null } : moveTo(state, earliest, delayMs)
}

/** Rounds down, because with fractions `a + b - a` can exceed `b`. */
function wholeMs(time: number): number {
  return Math.floor(time)
}

function afterFailure(failed: Candidate, failure: FailedAttempt, now: number, random: number): Candidate {
  return {
    ...failed,
    excluded: failed.excluded || !failure.sameTargetAllowed || failed.wasUnhealthy,
    // Use the backoff also if the upstream sent a Retry-After of 0.
    notBefore: now + (failure.retryAfterMs || backoff(failed.attempts, random)),
  }
}

/** Counts a second, hedged attempt at an untried target. @returns null = no target or no attempt is left */
export function startHedge(before: RetryState, suits: (target: Target) => boolean): { state: RetryState; target: Target } | null {
  const next = before.candidates.find(({ target, attempts, excluded }) => attempts === 0 && !excluded && suits(target))
  if (next === undefined || before.attemptsLeft <= 0) return null
  const candidates = before.candidates.map(candidate => (candidate === next ? { ...next, attempts: 1 } : candidate))
  return { state: { ...before, candidates, attemptsLeft: before.attemptsLeft - 1 }, target: next.target }
}

/** Makes `other` the current attempt after one of two simultaneous attempts failed. */
export function failHedge(
  before: RetryState, failed: Target, other: Target, failure: FailedAttempt, { now, random }: RetryContext,
): RetryState {
  const state = select(before, failed)
  return select(replace(state, afterFailure(state.current, failure, wholeMs(now), random)), other)
}

export function select(before: RetryState, target: Target): RetryState {
  return { ...before, current: before.candidates.find(candidate => candidate.target === target) ?? before.current }
}

/** Makes a target the only candidate. Its first attempt does not count as a retry. */
export function redirect(before: RetryState, target: Target): { state: RetryState; step: RetryStep } {
  const current = { ...newCandidate(target, false), attempts: 1 }
  return { state: { ...before, candidates: [current], current }, step: { target, delayMs: 0 } }
}

function newCandidate(target: Target, wasUnhealthy: boolean): Candidate {
  return { target, attempts: 0, notBefore: 0, wasUnhealthy, excluded: false }
}

function moveTo(before: RetryState, to: Candidate, delayMs: number): Decision {
  const current = { ...to, attempts: to.attempts + 1 }
  const candidates = before.candidates.map(candidate => (candidate === to ? current : candidate))
  return { state: { candidates, current, attemptsLeft: before.attemptsLeft - 1 }, step: { target: to.target, delayMs } }
}

function replace(before: RetryState, current: Candidate): RetryState {
  const candidates = before.candidates.map(candidate => (candidate === before.current ? current : candidate))
  return { ...before, candidates, current }
}

/** @returns ms; a random time between half and all of the exponential delay */
function backoff(attempts: number, random: number): number {
  return Math.min(FIRST_BACKOFF * 2 ** (attempts - 1), MAX_BACKOFF) * (0.5 + random / 2)
}
