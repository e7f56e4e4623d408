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

t.test('three failures in a row open the circuit, but not with a success between them', t => {
  const { health, fail, succeed } = setUp()
  fail(2)
  succeed()
  fail(2)
  t.ok(health.allows('a'))
  fail()
  t.notOk(health.allows('a'))
  t.match(health.condition('a'), { circuit: 'open', opensIn: 1_000, consecutiveFailures: 3 })
  t.ok(health.allows('b'), 'each candidate has its own')
  t.end()
})

t.test('a circuit reports how long it has been open, half-open included', t => {
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
  t.ok(health.allows('a'), 'it is back with the first byte, not with the last')
  t.match(health.condition('a'), { circuit: 'closed', inFlight: 1, firstByteMs: 20 })
  probe.succeeded()
  t.equal(health.condition('a').inFlight, 0)
  t.end()
})

t.test('a slow probe delays the next one by at most 10 s', t => {
  const { clock, health, fail } = setUp()
  fail(3)
  clock.advance(1_000)
  const slow = health.begin('a')
  clock.advance(9_999)
  t.notOk(health.allows('a'))
  clock.advance(1)
  t.ok(health.allows('a'))
  const next = health.begin('a')
  t.notOk(health.allows('a'), 'nor does that one let all through')
  t.match(health.condition('a'), { circuit: 'probing', inFlight: 2 })
  next.responseStarted(5)
  t.match(health.condition('a'), { circuit: 'closed' })
  fail()
  t.match(health.condition('a'), { circuit: 'probing' }, 'the first has no response yet')
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
  // Nobody else was well either.
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

t.test('a probe whose client disconnected makes room for the next one', t => {
  const { clock, health, fail } = setUp()
  fail(3)
  clock.advance(1_000)
  health.begin('a').abandoned()
  t.ok(health.allows('a'))
  t.equal(health.condition('a').circuit, 'open')
  t.end()
})

t.test('the pauses grow to 5 s, and a success resets them', t => {
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

t.test('the pause of the circuit applies when the target asks for a shorter one', t => {
  const { health, fail } = setUp()
  fail(2)
  fail(1, 100)
  t.equal(health.condition('a').opensIn, 1_000)
  t.end()
})

t.test('a pause is random, between half and all of its length', t => {
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

t.test('a target that asks for a pause gets it, for at most a minute', t => {
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

t.test('a short requested pause does not shorten that of the circuit', t => {
  const { health, fail } = setUp()
  const early = health.begin('a')
  fail(3)
  early.failed(10)
  t.equal(health.condition('a').opensIn, 1_000)
  t.end()
})

t.test('of two requested pauses the longer one applies', t => {
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

t.test('neither responses to earlier requests nor a passed check end a requested pause', t => {
  const { clock, health } = setUp()
  const early = health.begin('up\nx')
  clock.advance(10)
  health.begin('up\nx').failed(30_000)
  clock.advance(10)
  early.responseStarted(20)
  t.notOk(health.allows('up\nx'), 'the first byte of an earlier answer')
  early.succeeded()
  t.notOk(health.allows('up\nx'), 'its end')
  health.recordCheck('up', true)
  t.match(health.condition('up\nx'), { circuit: 'open', opensIn: 29_990 })
  // None was left, and it was asked all the same.
  health.begin('up\nx').responseStarted(20)
  t.match(health.condition('up\nx'), { circuit: 'closed', opensIn: 0 }, 'a response to what it was asked since')
  health.recordCheck('up', true)
  t.match(health.condition('up\nx'), { circuit: 'closed', opensIn: 0 }, 'and with that it is over')
  t.end()
})

t.test('after a requested pause, a response to an earlier request counts again', t => {
  const { clock, health } = setUp()
  const early = health.begin('up\nx')
  clock.advance(10)
  health.begin('up\nx').failed(2_000)
  clock.advance(2_000)
  early.responseStarted(2_010)
  t.equal(health.condition('up\nx').circuit, 'closed')
  t.end()
})

t.test('a target that starts responses and always breaks off is unhealthy', t => {
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

t.test('an attempt ends only once', t => {
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
  t.match(health.condition('a'), { firstByteMs: 120, expectedMs: 60 }, 'and is forgotten as slowly')
  t.end()
})

t.test('the number of remembered targets is bounded; unhealthy and busy ones are kept', t => {
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
  t.notOk(health.allows('m19999'), 'the last one is left alone')
  t.end()
})

t.test('two failed checks open the circuits of all models, until a check passes', t => {
  const { health, fail } = setUp()
  health.begin('up\nx').succeeded()
  t.ok(health.recordCheck('up', false))
  t.ok(health.allows('up\nx'), 'one may be an accident')
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

t.test('the first failure is that of the request before the first check, if the upstream has not worked since', t => {
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
  t.match(health.causeOf('up\nold'), { first: { requestId: 'before' } }, 'which has failed for longer')
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

t.test('an upstream without checks is judged only by its requests', t => {
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

t.test('a replaced upstream is forgotten, and other upstreams are kept', t => {
  const { health } = setUp()
  for (const id of ['u\nm', 'u\nn', 'v\nm']) for (let n = 0; n < 3; n++) health.begin(id).failed(null)
  for (const upstream of ['u', 'u', 'v', 'v']) health.recordCheck(upstream, false)
  health.forget('u')
  t.ok(health.allows('u\nm'))
  t.equal(health.recordCheck('u', false), true, 'the first check that it fails')
  t.strictSame(health.conditions().map(([id]) => id), ['v\nm'])
  t.notOk(health.allows('v\nm'))
  t.end()
})
