import t from 'tap'
import { CircuitLog } from '../../src/routing/circuit-log.ts'
import type { CircuitChange } from '../../src/routing/circuit-log.ts'
import { Health } from '../../src/routing/health.ts'
import { FakeClock } from '../support/fake-clock.ts'

function setUp() {
  const clock = new FakeClock()
  clock.advance(1_000)
  const circuits = new CircuitLog()
  const heard: CircuitChange[] = []
  circuits.subscribe(change => heard.push(change))
  const health = new Health({ clock, random: () => 1, circuits })
  const fail = (requestId: string, record: { outcome: string, status?: number, said?: string }, coolMs: number | null = null) =>
    health.begin('up\nm', { requestId, record }).failed(coolMs)
  return { clock, circuits, health, heard, fail }
}

t.test('a circuit event has the first and last failure, and the time of closing', t => {
  const { clock, health, heard, circuits, fail } = setUp()
  fail('old', { outcome: 'idle_timeout' })
  health.begin('up\nm').succeeded()
  const begun = clock.wall()
  fail('r1', { outcome: 'connect_timeout' })
  clock.advance(10)
  fail('r2', { outcome: 'error_answer', status: 503, said: 'overloaded' })
  t.strictSame(heard, [])
  clock.advance(10)
  fail('r3', { outcome: 'upstream_cut', status: 200 })
  const first = { at: begun, reason: 'connect_timeout', requestId: 'r1' }
  const last = { at: begun + 20, reason: 'upstream_cut', requestId: 'r3' }
  const opened = { at: begun + 20, upstream: 'up', model: 'm', state: 'open', failures: 3, first, last }
  t.strictSame(heard, [opened])
  t.strictSame(health.causeOf('up\nm'), { first, last })
  clock.advance(1_000)
  fail('r4', { outcome: 'error_answer', status: 503, said: 'overloaded' })
  t.equal(heard.length, 1, 'a failed probe causes no event')
  clock.advance(5_000)
  health.begin('up\nm', { requestId: 'r5', record: { outcome: 'ok' } }).responseStarted(5)
  t.match(heard[1], {
    at: begun + 6_020, state: 'closed', failures: 4, first, last: { reason: 'status 503 overloaded', requestId: 'r4' },
  })
  t.strictSame(circuits.events, heard)
  health.begin('up\nm').succeeded()
  t.strictSame(health.causeOf('up\nm'), { first: null, last: null })
  t.end()
})

t.test('failed checks, requested pauses and replaced upstreams also cause circuit events', t => {
  const { health, heard, fail } = setUp()
  health.recordCheck('up', false, 'status 500')
  health.recordCheck('up', false, 'connect_timeout: no response')
  health.recordCheck('up', false, 'status 502')
  t.match(heard, [{
    state: 'open', model: null, failures: 2,
    first: { reason: 'health check: status 500', requestId: null }, last: { reason: 'health check: connect_timeout: no response' },
  }])
  t.match(health.causeOf('up\nany'), { last: { reason: 'health check: status 502' } })
  fail('r1', { outcome: 'error_answer', status: 429 }, 5_000)
  health.recordCheck('up', true)
  t.match(heard.slice(1), [
    { state: 'open', model: 'm', failures: 1, first: { reason: 'status 429' } }, { state: 'closed', model: null },
  ])
  health.forget('up')
  t.match(heard.slice(3), [{ state: 'closed', model: 'm' }])
  t.end()
})

t.test('at most 200 events are kept', t => {
  const { circuits, health } = setUp()
  for (let n = 0; n < 300; n++) {
    health.recordCheck('up', false)
    health.recordCheck('up', false)
    health.recordCheck('up', true)
  }
  t.equal(circuits.events.length, 200)
  t.equal(circuits.events.at(-1)?.state, 'closed')
  t.end()
})
