import t from 'tap'
import { MAX_PER_MINUTE } from '../../src/limits/bucket.ts'
import { MultiScopeReservation, UNLIMITED, normalizeEstimate, normalizeUsage, notNegative, toCount } from '../../src/limits/reservation.ts'
import { Scope } from '../../src/limits/scope.ts'
import { FakeClock } from '../support/fake-clock.ts'

for (const [given, expected] of [
  [0, 0], [-1, 0], [-Infinity, 0], [1.2, 2], [7, 7], [MAX_PER_MINUTE + 1, MAX_PER_MINUTE], [Infinity, MAX_PER_MINUTE], [NaN, MAX_PER_MINUTE],
] as const) {
  t.test(`${given} tokens count as ${expected}`, async t => t.equal(toCount(given), expected))
}

t.test('invalid usage becomes unknown, and an invalid estimate becomes the maximum', async t => {
  t.strictSame(normalizeUsage({ tokens: NaN, pico: null }), { tokens: null, pico: null })
  t.strictSame(normalizeUsage({ tokens: null, pico: -1n }), { tokens: null, pico: 0n })
  t.strictSame(normalizeUsage({ tokens: 1.5, pico: 3n }), { tokens: 2, pico: 3n })
  t.strictSame(normalizeEstimate({ tokens: NaN, pico: null }), { tokens: MAX_PER_MINUTE, pico: null })
  t.strictSame(normalizeEstimate({ tokens: -4, pico: -4n }), { tokens: 0, pico: 0n })
  t.equal(notNegative(0n), 0n)
})

/** Two scopes with a limit each, and a reservation of 10 tokens in both. */
function reserved(isRunning = true) {
  const clock = new FakeClock('2026-11-21T12:00:00Z', 0.5)
  const now = { mono: 0, wall: clock.wall() }
  const scopes = [new Scope(null), new Scope('gpt-*')]
  for (const scope of scopes) scope.configure({ requestsPerMinute: null, tokensPerMinute: 100, concurrent: 1, budget: null }, now)
  const reservation = new MultiScopeReservation(scopes.map(scope => scope.reserve(10, 0n, now, !isRunning)), clock, isRunning)
  const isFull = () => scopes.map(scope => scope.blockingLimit(0, 0n, now) !== null)
  const remaining = () => scopes.map(scope => scope.rateLimitState('tokens', now)?.remaining)
  return { reservation, isFull, remaining }
}

t.test('concurrency is released in every scope, before the usage is known', async t => {
  const { reservation, isFull, remaining } = reserved()
  t.strictSame(isFull(), [true, true])
  reservation.releaseConcurrency()
  t.strictSame(isFull(), [false, false])
  t.strictSame(remaining(), [90, 90])
  reservation.settle({ tokens: 4, pico: 0n })
  t.strictSame(remaining(), [96, 96])
  t.strictSame(isFull(), [false, false])
})

t.test('only the first end of a reservation counts', async t => {
  const { reservation, remaining, isFull } = reserved()
  reservation.settle({ tokens: 40, pico: 0n })
  t.strictSame(isFull(), [false, false])
  reservation.release()
  reservation.releaseConcurrency()
  t.strictSame(remaining(), [60, 60])
})

t.test('a released reservation counts as no use', async t => {
  const { reservation, remaining } = reserved()
  reservation.release()
  t.strictSame(remaining(), [100, 100])
})

t.test('the settlement of a response within a session releases no concurrency', async t => {
  const { reservation, isFull } = reserved(false)
  const running = reserved()
  reservation.settle({ tokens: 0, pico: 0n })
  t.strictSame(isFull(), [false, false])
  t.strictSame(running.isFull(), [true, true])
})

t.test('a key without limits is admitted, and its reservation does nothing', async t => {
  t.ok(UNLIMITED.ok)
  if (!UNLIMITED.ok) return
  UNLIMITED.reservation.settle({ tokens: 1, pico: 1n })
  UNLIMITED.reservation.release()
  t.throws(() => Object.assign(UNLIMITED, { ok: false }), TypeError, 'the object is frozen')
})
