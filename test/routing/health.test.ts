import t from 'tap'
import { Health } from '../../src/routing/health.ts'
import { FakeClock } from '../support/fake-clock.ts'

function setUp(random = 1) {
  const clock = new FakeClock()
  clock.advance(1_000)
  const health = new Health({ clock, random: () => random })
  const fail = (times = 1, coolMs: number | null = null) => {
    for (let n = 0; n < times; n++) health.begin('a').failed(coolMs)
  }
  const succeed = () => health.begin('a').succeeded()
  return { clock, health, fail, succeed }
}

t.test('an unused target is healthy', t => {
  const { health } = setUp()
  t.ok(health.allows('a'))
  t.strictSame(health.condition('a'), {
    circuit: 'closed', opensIn: 0, openForMs: null, inFlight: 0, firstByteMs: null, expectedMs: null,
    consecutiveFailures: 0, isHint: false,
  })
  t.strictSame(health.conditions(), [])
  t.end()
})

t.test('three failures in a row open the circuit, and a success restarts the count', t => {
  const { health, fail, succeed } = setUp()
  fail(2)
  succeed()
  fail(2)
  t.ok(health.allows('a'))
  fail()
  t.notOk(health.allows('a'))
  t.match(health.condition('a'), { circuit: 'open', opensIn: 1_000, consecutiveFailures: 3 })
  t.ok(health.allows('b'), 'each target has its own circuit')
  t.end()
})

t.test('a circuit reports the time since it opened, also while it is half-open', t => {
  const { clock, health, fail, succeed } = setUp()
  fail(2)
  t.equal(health.condition('a').openForMs, null)
  fail()
  clock.advance(400)
  t.match(health.condition('a'), { circuit: 'open', openForMs: 400 })
  clock.advance(600)
  const probe = health.begin('a')
  t.match(health.condition('a'), { circuit: 'probing', openForMs: 1_000 })
  probe.failed(null)
  clock.advance(100)
  t.match(health.condition('a'), { circuit: 'open', openForMs: 1_100 })
  succeed()
  t.match(health.condition('a'), { circuit: 'closed', openForMs: null })
  health.recordCheck('up', false)
  clock.advance(50)
  health.recordCheck('up', false)
  t.match(health.conditions().at(-1)?.[1], { circuit: 'open', openForMs: 50 })
  t.end()
})

t.test('ten failures of the last twenty open the circuit', t => {
  const { health, fail, succeed } = setUp()
  for (let n = 0; n < 9; n++) {
    fail()
    succeed()
  }
  succeed()
  t.ok(health.allows('a'))
  fail()
  t.notOk(health.allows('a'))
  t.end()
})

t.test('failures before the circuit opened do not count after it closes', t => {
  const { clock, health, fail, succeed } = setUp()
  for (let n = 0; n < 10; n++) {
    succeed()
    fail()
  }
  t.notOk(health.allows('a'))
  clock.advance(1_000)
  succeed()
  fail()
  t.ok(health.allows('a'))
  t.end()
})

t.test('one failure in ten never opens the circuit', t => {
  const { health, fail, succeed } = setUp()
  for (let n = 0; n < 100; n++) {
    fail()
    t.ok(health.allows('a'))
    for (let well = 0; well < 9; well++) succeed()
  }
  t.end()
})

t.test('a half-open circuit allows one probe at a time', t => {
  const { clock, health, fail } = setUp()
  fail(3)
  clock.advance(999)
  t.notOk(health.allows('a'))
  clock.advance(1)
  t.ok(health.allows('a'))
  const probe = health.begin('a')
  t.notOk(health.allows('a'))
  t.equal(health.condition('a').circuit, 'probing')
  probe.responseStarted(20)
  t.ok(health.allows('a'), 'the first byte closes the circuit')
  t.match(health.condition('a'), { circuit: 'closed', inFlight: 1, firstByteMs: 20 })
  probe.succeeded()
  t.equal(health.condition('a').inFlight, 0)
  t.end()
})

t.test('a slow probe delays the next probe by at most 10 s', t => {
  const { clock, health, fail } = setUp()
  fail(3)
  clock.advance(1_000)
  const slow = health.begin('a')
  clock.advance(9_999)
  t.notOk(health.allows('a'))
  clock.advance(1)
  t.ok(health.allows('a'))
  const next = health.begin('a')
  t.notOk(health.allows('a'), 'a second probe does not allow other requests')
  t.match(health.condition('a'), { circuit: 'probing', inFlight: 2 })
  next.responseStarted(5)
  t.match(health.condition('a'), { circuit: 'closed' })
  fail()
  t.match(health.condition('a'), { circuit: 'probing' }, 'the first probe has no response yet')
  slow.abandoned()
  next.succeeded()
  t.match(health.condition('a'), { circuit: 'closed', inFlight: 0 })
  t.end()
})

t.test('a request during a probe does not delay the next probe', t => {
  const { clock, health, fail } = setUp()
  fail(3)
  clock.advance(1_000)
  health.begin('a')
  clock.advance(5_000)
  // The probe ends without an outcome.
  health.begin('a').abandoned()
  clock.advance(5_000)
  t.ok(health.allows('a'))
  t.end()
})

t.test('a long response to a probe does not delay the next probe', t => {
  for (const isOver of [false, true]) {
    const { clock, health, fail } = setUp()
    fail(3)
    clock.advance(1_000)
    const probe = health.begin('a')
    probe.responseStarted(20)
    if (isOver) probe.succeeded()
    fail(3)
    const { circuit, opensIn } = health.condition('a')
    t.equal(circuit, 'open')
    clock.advance(opensIn)
    t.ok(health.allows('a'))
  }
  t.end()
})

t.test('if the client of a probe disconnects, the next probe is allowed', t => {
  const { clock, health, fail } = setUp()
  fail(3)
  clock.advance(1_000)
  health.begin('a').abandoned()
  t.ok(health.allows('a'))
  t.equal(health.condition('a').circuit, 'open')
  t.end()
})

t.test('the pauses of a circuit grow to 5 s, and a success resets them', t => {
  const { clock, health, fail, succeed } = setUp()
  fail(3)
  for (const pause of [1_000, 2_000, 4_000, 5_000, 5_000]) {
    t.equal(health.condition('a').opensIn, pause)
    clock.advance(pause)
    fail()
  }
  clock.advance(5_000)
  succeed()
  fail(3)
  t.equal(health.condition('a').opensIn, 1_000)
  t.end()
})

t.test('a failed probe lengthens the pause, even after few failures in a row', t => {
  const { clock, health, fail, succeed } = setUp()
  for (let n = 0; n < 10; n++) {
    succeed()
    fail()
  }
  clock.advance(1_000)
  t.ok(health.allows('a'))
  fail()
  t.match(health.condition('a'), { circuit: 'open', opensIn: 2_000, consecutiveFailures: 2 })
  t.notOk(health.allows('a'))
  t.end()
})

t.test('the pause of the circuit applies if the target requests a shorter pause', t => {
  const { health, fail } = setUp()
  fail(2)
  fail(1, 100)
  t.equal(health.condition('a').opensIn, 1_000)
  t.end()
})

t.test('the pause of a circuit is at random between 50% and 100% of its length', t => {
  const { health, fail } = setUp(0)
  fail(3)
  t.equal(health.condition('a').opensIn, 500)
  t.end()
})

t.test('failures of requests that were running when the circuit opened do not lengthen the pause', t => {
  const { health } = setUp()
  const trials = Array.from({ length: 10 }, () => health.begin('a'))
  for (const trial of trials) trial.failed(null)
  t.match(health.condition('a'), { opensIn: 1_000, inFlight: 0 })
  t.end()
})

t.test('a target is paused for the time that it requests, at most a minute', t => {
  const { clock, health, fail, succeed } = setUp()
  fail(1, 2_000)
  t.equal(health.condition('a').opensIn, 2_000)
  clock.advance(2_000)
  t.ok(health.allows('a'))
  succeed()
  fail(1, 3_600_000)
  t.equal(health.condition('a').opensIn, 60_000)
  t.end()
})

t.test('a requested pause is neither lengthened nor shortened by other failures', t => {
  const { clock, health, fail, succeed } = setUp()
  fail(1, 200)
  t.equal(health.condition('a').opensIn, 200)
  clock.advance(200)
  succeed()
  fail(2)
  fail(1, 30_000)
  t.equal(health.condition('a').opensIn, 30_000)
  t.end()
})

t.test('a short requested pause does not shorten the pause of the circuit', t => {
  const { health, fail } = setUp()
  const early = health.begin('a')
  fail(3)
  early.failed(10)
  t.equal(health.condition('a').opensIn, 1_000)
  t.end()
})

t.test('the longer of two requested pauses applies', t => {
  const { clock, health } = setUp()
  const early = health.begin('a')
  clock.advance(10)
  health.begin('a').failed(30_000)
  health.begin('a').failed(1_000)
  clock.advance(2_000)
  early.responseStarted(2_010)
  t.equal(health.condition('a').opensIn, 28_000)
  t.end()
})

t.test('neither a response to an earlier request nor a passed check ends a requested pause', t => {
  const { clock, health } = setUp()
  const early = health.begin('up\nx')
  clock.advance(10)
  health.begin('up\nx').failed(30_000)
  clock.advance(10)
  early.responseStarted(20)
  t.notOk(health.allows('up\nx'), 'the first byte of an earlier response')
  early.succeeded()
  t.notOk(health.allows('up\nx'), 'the end of an earlier response')
  health.recordCheck('up', true)
  t.match(health.condition('up\nx'), { circuit: 'open', opensIn: 29_990 })
  // The request is sent nevertheless, because no other target is left.
  health.begin('up\nx').responseStarted(20)
  t.match(health.condition('up\nx'), { circuit: 'closed', opensIn: 0 }, 'a response to a later request')
  health.recordCheck('up', true)
  t.match(health.condition('up\nx'), { circuit: 'closed', opensIn: 0 }, 'the pause has ended')
  t.end()
})

t.test('after a requested pause, a response to an earlier request closes the circuit', t => {
  const { clock, health } = setUp()
  const early = health.begin('up\nx')
  clock.advance(10)
  health.begin('up\nx').failed(2_000)
  clock.advance(2_000)
  early.responseStarted(2_010)
  t.equal(health.condition('up\nx').circuit, 'closed')
  t.end()
})

t.test('a target that starts responses but always breaks them off is unhealthy', t => {
  const { health } = setUp()
  for (let n = 0; n < 3; n++) {
    const trial = health.begin('a')
    trial.responseStarted(10)
    trial.failed(null)
  }
  t.notOk(health.allows('a'))
  t.end()
})

t.test('abandoned requests never count as failures', t => {
  const { health } = setUp()
  for (let n = 0; n < 100; n++) health.begin('a').abandoned()
  t.ok(health.allows('a'))
  t.match(health.condition('a'), { consecutiveFailures: 0, inFlight: 0 })
  t.end()
})

t.test('only the first end of an attempt counts', t => {
  const { health } = setUp()
  const trial = health.begin('a')
  trial.succeeded()
  trial.failed(null)
  trial.abandoned()
  trial.responseStarted(9)
  t.match(health.condition('a'), { inFlight: 0, consecutiveFailures: 0, firstByteMs: null })
  t.end()
})

t.test('the average time to the first byte changes slowly', t => {
  const { clock, health } = setUp()
  for (const ms of [100, 200]) {
    const trial = health.begin('a')
    trial.responseStarted(ms)
    trial.succeeded()
  }
  t.match(health.condition('a'), { firstByteMs: 120, expectedMs: 120 })
  clock.advance(30_000)
  t.match(health.condition('a'), { firstByteMs: 120, expectedMs: 60 }, 'the average falls slowly without requests')
  t.end()
})

t.test('the number of remembered targets is bounded, and unhealthy and busy targets are kept', t => {
  const { health, fail } = setUp()
  fail(3)
  health.begin('busy')
  for (let n = 0; n < 20_000; n++) health.begin(`x${n}`).succeeded()
  t.ok(health.conditions().length <= 4_098)
  t.notOk(health.allows('a'))
  t.equal(health.condition('busy').inFlight, 1)
  t.end()
})

t.test('targets with an expired pause are forgotten too', t => {
  const { clock, health } = setUp()
  for (let n = 0; n < 20_000; n++) {
    health.begin(`m${n}`).failed(1_000)
    clock.advance(1)
  }
  t.ok(health.conditions().length < 10_000, `${health.conditions().length} names are remembered`)
  t.notOk(health.allows('m19999'), 'the target that failed last is still paused')
  t.end()
})

t.test('two failed checks open the circuits of all models of the upstream, until a check passes', t => {
  const { health, fail } = setUp()
  health.begin('up\nx').succeeded()
  t.ok(health.recordCheck('up', false))
  t.ok(health.allows('up\nx'), 'one failed check is not enough')
  t.notOk(health.recordCheck('up', false))
  t.notOk(health.allows('up\nx'))
  t.notOk(health.allows('up\nnever-asked'))
  t.match(health.condition('up\nx'), { circuit: 'open', opensIn: Infinity })
  t.match(health.condition('up\nnever-asked'), { circuit: 'open', opensIn: Infinity })
  t.ok(health.allows('upper\nx'))
  t.ok(health.recordCheck('up', true))
  t.ok(health.allows('up\nx'))
  fail(3)
  t.end()
})

t.test('if an upstream failed a request and then its checks, the failed request is reported as the first failure', t => {
  const { clock, health } = setUp()
  const fail = (id: string, requestId: string) =>
    health.begin(id, { requestId, record: { outcome: 'error_answer', status: 503 } }).failed(null)
  fail('up\nold', 'before')
  clock.advance(10)
  health.begin('up\nx').succeeded()
  clock.advance(10)
  fail('up\nx', 'first')
  clock.advance(10)
  health.recordCheck('up', false)
  health.recordCheck('up', false)
  clock.advance(10)
  t.match(health.causeOf('up\nx'), { first: { requestId: 'first' }, last: { reason: /^health check/ } })
  t.match(health.causeOf('up\nold'), { first: { requestId: 'before' } }, 'the request failed earlier')
  t.match(health.causeOf('up\n'), { first: { requestId: 'first' } }, 'of the upstream as a whole')
  t.match(health.causeOf('up\nnever-asked'), { first: { requestId: 'first' }, last: { reason: /^health check/ } })
  fail('up\nx', 'second')
  t.match(health.causeOf('up\nx'), { first: { requestId: 'first' }, last: { requestId: 'second' } })
  t.end()
})

t.test('a passed check closes circuits that requests opened', t => {
  const { health } = setUp()
  for (let n = 0; n < 3; n++) health.begin('up\nx').failed(null)
  t.notOk(health.allows('up\nx'))
  health.recordCheck('up', true)
  t.ok(health.allows('up\nx'))
  t.end()
})

t.test('after clearChecks, failed checks do not count', t => {
  const { health } = setUp()
  health.recordCheck('up', false)
  health.recordCheck('up', false)
  health.clearChecks('up')
  t.ok(health.allows('up\nx'))
  t.end()
})

t.test('an upstream with failed checks is reported before its first request', t => {
  const { health } = setUp()
  health.recordCheck('up', false)
  t.strictSame(health.conditions(), [])
  health.recordCheck('up', false)
  t.match(health.conditions(), [['up\n', { circuit: 'open', opensIn: Infinity, inFlight: 0 }]])
  health.begin('up\nm')
  t.match(health.conditions(), [['up\nm', { circuit: 'open', opensIn: Infinity, inFlight: 1 }]])
  t.equal(health.conditions().length, 1)
  health.recordCheck('up', true)
  t.match(health.conditions(), [['up\nm', { circuit: 'closed' }]])
  t.end()
})

t.test('forget drops the health of one upstream and keeps the health of other upstreams', t => {
  const { health } = setUp()
  for (const id of ['u\nm', 'u\nn', 'v\nm']) for (let n = 0; n < 3; n++) health.begin(id).failed(null)
  for (const upstream of ['u', 'u', 'v', 'v']) health.recordCheck(upstream, false)
  health.forget('u')
  t.ok(health.allows('u\nm'))
  t.equal(health.recordCheck('u', false), true, 'the first failed check')
  t.strictSame(health.conditions().map(([id]) => id), ['v\nm'])
  t.notOk(health.allows('v\nm'))
  t.end()
})
