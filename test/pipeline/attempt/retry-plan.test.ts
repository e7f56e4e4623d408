import t from 'tap'
import type { Target } from '../../../src/config/types.ts'
import type { Exchange, Plan } from '../../../src/pipeline/exchange/exchange.ts'
import type { Gateway } from '../../../src/pipeline/parts/gateway.ts'
import type { AttemptFailure } from '../../../src/pipeline/attempt/attempt-failure.ts'
import { RetryPlan } from '../../../src/pipeline/attempt/retry-plan.ts'
import type { Deadlines } from '../../../src/proxy/http/deadlines.ts'
import { candidateId } from '../../../src/routing/candidate.ts'
import { Health } from '../../../src/routing/health.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const FAILURE: AttemptFailure = { error: null, status: 503, response: null, said: null, reason: null, retryAfterMs: null }

/** Retry plans of requests for one target, each with at most three attempts. */
function setUp() {
  const clock = new FakeClock()
  clock.advance(1_000)
  const health = new Health({ clock, random: () => 1 })
  const target = { upstream: { name: 'a' }, model: null } as Target
  const route = { retries: 2, on: { contextLength: null, contentFilter: null } }
  const begin = () => new RetryPlan(
    { health, clock } as unknown as Gateway, { request: { model: 'm' } } as unknown as Exchange,
    { route, order: [target], quotes: [] } as unknown as Plan, { remaining: 60_000 } as Deadlines,
  )
  return { clock, begin, ask: () => health.begin(candidateId(target, 'm')) }
}

t.test('a target with an open circuit gets no second attempt, even during a probe', t => {
  const { clock, begin, ask } = setUp()
  t.ok(begin().next(FAILURE, false), 'a healthy target is tried again')
  for (let n = 0; n < 3; n++) ask().failed(null)
  t.equal(begin().next(FAILURE, false), null)
  clock.advance(1_000)
  t.equal(begin().next(FAILURE, false), null, 'the circuit is half-open')
  const probe = ask()
  t.equal(begin().next(FAILURE, false), null, 'a probe is running')
  probe.responseStarted(1)
  t.ok(begin().next(FAILURE, false), 'the probe has a response')
  t.end()
})
