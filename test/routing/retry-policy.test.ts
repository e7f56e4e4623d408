import t from 'tap'
import { failHedge, nextAttempt, redirect, select, startHedge, startRetries } from '../../src/routing/retry-policy.ts'
import type { FailedAttempt, RetryContext } from '../../src/routing/retry-policy.ts'

const [A, B, C] = ['a', 'b', 'c'].map(name => ({ upstream: { name } })) as never[]
const MOMENT = { now: 1_000, timeLeft: 60_000, random: 0 }
/** Applies one decision after the other, as a request does. */
function plan(order: never[], retries: number, isUnhealthy?: (target: unknown) => boolean) {
  let state = startRetries(order, retries, isUnhealthy)
  return {
    get current() {
      return state.current.target
    },
    get attemptsLeft() {
      return state.attemptsLeft
    },
    next: (failure: FailedAttempt, context: RetryContext) => {
      const decision = nextAttempt(state, failure, context)
      state = decision.state
      return decision.step
    },
    redirect: (target: never) => {
      const redirected = redirect(state, target)
      state = redirected.state
      return redirected.step
    },
  }
}

const PLAIN = { retryable: true, sameTargetAllowed: true, sameTargetFirst: false, retryAfterMs: null }

t.test('each target is tried once in order, then the target that is available first', t => {
  const request = plan([A!, B!, C!], 6)
  t.equal(request.current, A)
  t.match(request.next({ ...PLAIN, retryAfterMs: 3_000 }, MOMENT), { target: B, delayMs: 0 })
  t.match(request.next({ ...PLAIN, sameTargetAllowed: false }, MOMENT), { target: C, delayMs: 0 })
  t.match(request.next(PLAIN, MOMENT), { target: C, delayMs: 50 }, 'target B was silent, target A has a retry delay')
  t.match(request.next({ ...PLAIN, retryAfterMs: 9_000 }, MOMENT), { target: A, delayMs: 3_000 })
  t.equal(request.next({ ...PLAIN, sameTargetAllowed: false }, MOMENT), null, 'the retry delay of target C is too long')
  t.end()
})

t.test('the backoff doubles up to a maximum, and has jitter', t => {
  const delays = (random: number) => {
    const request = plan([A!], 100)
    return Array.from({ length: 8 }, () => request.next(PLAIN, { ...MOMENT, random })?.delayMs)
  }
  t.strictSame(delays(0), [50, 100, 200, 400, 800, 1000, 1000, 1000])
  t.strictSame(delays(1), [100, 200, 400, 800, 1600, 2000, 2000, 2000])
  t.end()
})

t.test('time that passes during an attempt at another target counts toward the retry delay', t => {
  const request = plan([A!, B!], 2)
  t.match(request.next({ ...PLAIN, retryAfterMs: 1_000 }, MOMENT), { target: B })
  const later = { ...MOMENT, now: MOMENT.now + 600 }
  t.match(request.next({ ...PLAIN, sameTargetAllowed: false }, later), { target: A, delayMs: 400 })
  const passed = plan([A!, B!], 2)
  t.match(passed.next({ ...PLAIN, retryAfterMs: 1_000 }, MOMENT), { target: B })
  const longAfter = { ...MOMENT, now: MOMENT.now + 60_000 }
  t.match(passed.next({ ...PLAIN, sameTargetAllowed: false }, longAfter), { target: A, delayMs: 0 })
  t.end()
})

t.test('no attempt follows if no retry is left, the failure is not retryable, or the time is up', t => {
  t.equal(plan([A!, B!], 0).next(PLAIN, MOMENT), null)
  t.equal(plan([A!, B!], 1).next({ ...PLAIN, retryable: false }, MOMENT), null)
  t.equal(plan([A!], 1).next(PLAIN, { ...MOMENT, timeLeft: 40 }), null)
  t.equal(plan([A!], 1).next({ ...PLAIN, retryAfterMs: 5_001 }, MOMENT), null)
  t.end()
})

t.test('a wait of exactly the maximum is allowed at every fraction of a millisecond', t => {
  let misses = 0
  for (let n = 0; n < 10_000; n++) {
    const moment = { ...MOMENT, now: n * 3.000_123 }
    const one = plan([A!], 1).next({ ...PLAIN, retryAfterMs: 5_000 }, moment)
    const soon = plan([A!, B!], 2).next({ ...PLAIN, sameTargetFirst: true, retryAfterMs: 3_000 }, moment)
    if (one === null || soon?.target !== A) misses++
  }
  t.equal(misses, 0)
  t.end()
})

t.test('a redirect uses no retry, and replaces the remaining targets', t => {
  const request = plan([A!, B!], 0)
  t.match(request.redirect(C!), { target: C, delayMs: 0 })
  t.equal(request.current, C)
  t.equal(request.attemptsLeft, 0)
  t.equal(request.next(PLAIN, MOMENT), null)
  t.end()
})

t.test('after a transient failure the same target is tried once more, if attempts are left for other targets', t => {
  const accident = { ...PLAIN, sameTargetFirst: true }
  const request = plan([A!, B!], 3)
  t.match(request.next(accident, MOMENT), { target: A, delayMs: 50 })
  t.match(request.next(accident, MOMENT), { target: B, delayMs: 0 }, 'no third attempt in a row')
  t.match(request.next(PLAIN, MOMENT), { target: B, delayMs: 50 })
  const single = plan([A!, B!], 1)
  t.match(single.next(accident, MOMENT), { target: B, delayMs: 0 }, 'no attempt is left for the same target')
  t.match(plan([A!, B!], 2).next({ ...accident, sameTargetAllowed: false }, MOMENT), { target: B, delayMs: 0 })
  t.end()
})

t.test('the gateway waits for a short retry delay, and tries another target instead of a long one', t => {
  const asked = (retryAfterMs: number, timeLeft = 60_000) =>
    plan([A!, B!], 2).next({ ...PLAIN, sameTargetFirst: true, retryAfterMs }, { ...MOMENT, timeLeft })
  t.match(asked(3_000), { target: A, delayMs: 3_000 })
  t.match(asked(0), { target: A, delayMs: 50 }, 'no tight loop')
  t.match(asked(3_001), { target: B, delayMs: 0 })
  t.match(asked(2_000, 2_000), { target: B, delayMs: 0 }, 'the time would be up')
  t.end()
})

t.test('a target that was already unhealthy is tried only once', t => {
  const isUnhealthy = (target: unknown) => target === B
  const request = plan([A!, B!], 4, isUnhealthy)
  t.match(request.next(PLAIN, MOMENT), { target: B })
  t.match(request.next({ ...PLAIN, sameTargetFirst: true }, MOMENT), { target: A })
  t.match(request.next(PLAIN, MOMENT), { target: A })
  t.equal(plan([B!], 5, isUnhealthy).next(PLAIN, MOMENT), null)
  t.equal(plan([B!], 1, isUnhealthy).next(PLAIN, MOMENT), null, 'though one attempt is left')
  t.end()
})

t.test('the target of a redirect is retried like any other target', t => {
  const request = plan([A!, B!], 1)
  t.strictSame(request.redirect(C!), { target: C, delayMs: 0 })
  t.equal(request.attemptsLeft, 1, 'a redirect is no retry')
  t.match(request.next(PLAIN, MOMENT), { target: C, delayMs: 50 })
  t.equal(request.next(PLAIN, MOMENT), null)
  t.end()
})

t.test('a hedge goes to the next suitable untried target, and uses one retry', t => {
  const begun = startRetries([A!, B!, C!], 2, () => false)
  const started = startHedge(begun, target => target !== B)
  t.match(started, { target: C, state: { attemptsLeft: 1, current: { target: A } } })
  t.equal(startHedge(begun, () => false), null, 'no target is suitable')
  t.equal(startHedge(startRetries([A!], 2, () => false), () => true), null, 'all were tried')
  t.equal(startHedge(startRetries([A!, B!], 0, () => false), () => true), null, 'no attempt is left')
  const failed = failHedge(started!.state, C!, A!, { ...PLAIN, sameTargetAllowed: false }, MOMENT)
  t.equal(failed.current.target, A)
  t.match(nextAttempt(failed, PLAIN, MOMENT).step, { target: B, delayMs: 0 })
  const chosen = select(started!.state, C!)
  t.equal(chosen.current.target, C)
  t.match(nextAttempt(chosen, { ...PLAIN, sameTargetAllowed: false }, MOMENT).step, { target: B, delayMs: 0 })
  t.end()
})
