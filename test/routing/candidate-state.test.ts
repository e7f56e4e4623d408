import t from 'tap'
import { CandidateState } from '../../src/routing/candidate-state.ts'

const [A, B, C] = ['a', 'b', 'c'].map(name => ({ upstream: { name } })) as never[]
const MOMENT = { now: 1_000, timeLeft: 60_000, random: 0 }
const PLAIN = { retryable: true, again: true, soon: false, retryAfterMs: null }

t.test('each candidate once, in order; then again, the one that may be asked soonest', t => {
  const course = new CandidateState([A!, B!, C!], 6)
  t.equal(course.current, A)
  t.match(course.next({ ...PLAIN, retryAfterMs: 3_000 }, MOMENT), { target: B, delayMs: 0 })
  t.match(course.next({ ...PLAIN, again: false }, MOMENT), { target: C, delayMs: 0 })
  t.match(course.next(PLAIN, MOMENT), { target: C, delayMs: 50 }, 'b is silent, a wants to be left alone')
  t.match(course.next({ ...PLAIN, retryAfterMs: 9_000 }, MOMENT), { target: A, delayMs: 3_000 })
  t.equal(course.next({ ...PLAIN, again: false }, MOMENT), null, 'c would take too long')
  t.end()
})

t.test('the backoff grows, is jittered and has a bound', t => {
  const delays = (random: number) => {
    const course = new CandidateState([A!], 100)
    return Array.from({ length: 8 }, () => course.next(PLAIN, { ...MOMENT, random })?.delayMs)
  }
  t.strictSame(delays(0), [50, 100, 200, 400, 800, 1000, 1000, 1000])
  t.strictSame(delays(1), [100, 200, 400, 800, 1600, 2000, 2000, 2000])
  t.end()
})

t.test('what has passed of a wait, while another was asked, is not waited again', t => {
  const course = new CandidateState([A!, B!], 2)
  t.match(course.next({ ...PLAIN, retryAfterMs: 1_000 }, MOMENT), { target: B })
  const later = { ...MOMENT, now: MOMENT.now + 600 }
  t.match(course.next({ ...PLAIN, again: false }, later), { target: A, delayMs: 400 })
  const passed = new CandidateState([A!, B!], 2)
  t.match(passed.next({ ...PLAIN, retryAfterMs: 1_000 }, MOMENT), { target: B })
  const longAfter = { ...MOMENT, now: MOMENT.now + 60_000 }
  t.match(passed.next({ ...PLAIN, again: false }, longAfter), { target: A, delayMs: 0 })
  t.end()
})

t.test('there is no next attempt when none is left, when it cannot help, or when the time is up', t => {
  t.equal(new CandidateState([A!, B!], 0).next(PLAIN, MOMENT), null)
  t.equal(new CandidateState([A!, B!], 1).next({ ...PLAIN, retryable: false }, MOMENT), null)
  t.equal(new CandidateState([A!], 1).next(PLAIN, { ...MOMENT, timeLeft: 40 }), null)
  t.equal(new CandidateState([A!], 1).next({ ...PLAIN, retryAfterMs: 5_001 }, MOMENT), null)
  t.end()
})

t.test('the longest wait is waited, whatever the clock says', t => {
  let misses = 0
  for (let n = 0; n < 10_000; n++) {
    const moment = { ...MOMENT, now: n * 3.000_123 }
    const one = new CandidateState([A!], 1).next({ ...PLAIN, retryAfterMs: 5_000 }, moment)
    const soon = new CandidateState([A!, B!], 2).next({ ...PLAIN, soon: true, retryAfterMs: 3_000 }, moment)
    if (one === null || soon?.target !== A) misses++
  }
  t.equal(misses, 0)
  t.end()
})

t.test('a redirection is no retry, and leaves no other candidate', t => {
  const course = new CandidateState([A!, B!], 0)
  t.match(course.redirect(C!), { target: C, delayMs: 0 })
  t.equal(course.current, C)
  t.equal(course.attemptsLeft, 0)
  t.equal(course.next(PLAIN, MOMENT), null)
  t.end()
})

t.test('after an accident the same one is asked once more, where attempts are left for all the others', t => {
  const accident = { ...PLAIN, soon: true }
  const course = new CandidateState([A!, B!], 3)
  t.match(course.next(accident, MOMENT), { target: A, delayMs: 50 })
  t.match(course.next(accident, MOMENT), { target: B, delayMs: 0 }, 'and no third time in a row')
  t.match(course.next(PLAIN, MOMENT), { target: B, delayMs: 50 })
  const single = new CandidateState([A!, B!], 1)
  t.match(single.next(accident, MOMENT), { target: B, delayMs: 0 }, 'no attempt is left over')
  t.match(new CandidateState([A!, B!], 2).next({ ...accident, again: false }, MOMENT), { target: B, delayMs: 0 })
  t.end()
})

t.test('a short time that it asked for is waited, a long one is not while there are others', t => {
  const asked = (retryAfterMs: number, timeLeft = 60_000) =>
    new CandidateState([A!, B!], 2).next({ ...PLAIN, soon: true, retryAfterMs }, { ...MOMENT, timeLeft })
  t.match(asked(3_000), { target: A, delayMs: 3_000 })
  t.match(asked(0), { target: A, delayMs: 50 }, 'no tight loop')
  t.match(asked(3_001), { target: B, delayMs: 0 })
  t.match(asked(2_000, 2_000), { target: B, delayMs: 0 }, 'the time would be up')
  t.end()
})

t.test('one that was ill before is asked once', t => {
  const isIll = (target: unknown) => target === B
  const course = new CandidateState([A!, B!], 4, isIll)
  t.match(course.next(PLAIN, MOMENT), { target: B })
  t.match(course.next({ ...PLAIN, soon: true }, MOMENT), { target: A })
  t.match(course.next(PLAIN, MOMENT), { target: A })
  t.equal(new CandidateState([B!], 5, isIll).next(PLAIN, MOMENT), null)
  t.equal(new CandidateState([B!], 1, isIll).next(PLAIN, MOMENT), null, 'though one attempt is left')
  t.end()
})

t.test('who is asked instead is asked again like any other, while attempts are left', t => {
  const course = new CandidateState([A!, B!], 1)
  t.strictSame(course.redirect(C!), { target: C, delayMs: 0 })
  t.equal(course.attemptsLeft, 1, 'to go there is no retry')
  t.match(course.next(PLAIN, MOMENT), { target: C, delayMs: 50 })
  t.equal(course.next(PLAIN, MOMENT), null)
  t.end()
})
