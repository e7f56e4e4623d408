import t from 'tap'
import type { GatewayError } from '../../../src/base/errors.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
import type { Timeouts } from '../../../src/config/types.ts'
import { Deadlines } from '../../../src/proxy/http/deadlines.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const MINUTE = 60_000
const TIMEOUTS: Timeouts = { connect: 1_000, firstByte: 2_000, idle: 3_000, total: 100_000 }

function setUp(timeouts = TIMEOUTS, startedAt = 0) {
  const clock = new FakeClock()
  const expired: GatewayError[] = []
  const deadlines = new Deadlines(clock, timeouts, startedAt, error => expired.push(error))
  return { clock, expired, deadlines, codes: () => expired.map(error => error.code) }
}

t.test('by default connect is limited to 10 s, and first byte, idle and total to 30 minutes each', async t => {
  const dir = t.testdir({
    'gateway.yaml': 'upstreams: { demo: { simulator: true } }\nroutes: [{ to: demo }]\n',
  })
  const file = `${dir}/gateway.yaml`
  const { timeouts } = loadConfig(file, {}).config
  t.strictSame({ ...timeouts }, {
    connect: 10_000, firstByte: 30 * MINUTE, idle: 30 * MINUTE, total: 30 * MINUTE,
  })
  for (const [begin, limit, code] of [
    [(deadlines: Deadlines) => deadlines.connecting(), 10_000, 'connect_timeout'],
    [(deadlines: Deadlines) => deadlines.waiting(), 30 * MINUTE, 'first_byte_timeout'],
    [(deadlines: Deadlines) => deadlines.upstreamActive(), 30 * MINUTE, 'idle_timeout'],
    [(deadlines: Deadlines) => deadlines.clientBlocked(), 30 * MINUTE, 'client_stalled'],
    [(deadlines: Deadlines) => deadlines.betweenAttempts(), 30 * MINUTE, 'total_timeout'],
  ] as const) {
    const total = code === 'total_timeout' ? timeouts.total : timeouts.total * 2
    const { clock, deadlines, codes } = setUp({ ...timeouts, total })
    begin(deadlines)
    clock.advance(limit - 1)
    t.strictSame(codes(), [], `not before ${limit} ms`)
    clock.advance(1)
    t.strictSame(codes(), [code])
    t.equal(clock.pending, 0, 'no timer is left')
  }
})

t.test('each phase has its own timeout, and the timeout of the previous phase no longer applies', async t => {
  const { clock, deadlines, codes } = setUp()
  deadlines.connecting()
  clock.advance(999)
  deadlines.waiting()
  clock.advance(1_999)
  deadlines.upstreamActive()
  clock.advance(2_999)
  t.strictSame(codes(), [])
  clock.advance(1)
  t.strictSame(codes(), ['idle_timeout'])
})

t.test('the timeout of a phase applies even if the previous phase had a longer timeout', async t => {
  const { clock, deadlines, codes } = setUp({ connect: 10_000, firstByte: 8_000, idle: 300, total: 100_000 })
  deadlines.connecting()
  deadlines.waiting()
  clock.advance(7_999)
  deadlines.upstreamActive()
  clock.advance(299)
  t.strictSame(codes(), [])
  clock.advance(1)
  t.strictSame(codes(), ['idle_timeout'])
  deadlines.connecting()
  deadlines.waiting()
  clock.advance(8_000)
  t.strictSame(codes(), ['idle_timeout', 'first_byte_timeout'])
})

t.test('the first_byte timeout does not apply in mid-stream', async t => {
  const { clock, deadlines, codes } = setUp()
  deadlines.waiting()
  for (let i = 0; i < 30; i++) {
    clock.advance(1_900)
    deadlines.upstreamActive()
  }
  t.strictSame(codes(), [])
})

t.test('the idle timeout counts from the last byte, to the millisecond', async t => {
  const { clock, deadlines, codes } = setUp()
  for (const pause of [2_999, 1, 2_500, 2_999]) {
    deadlines.upstreamActive()
    clock.advance(pause)
  }
  t.strictSame(codes(), [])
  clock.advance(1)
  t.strictSame(codes(), ['idle_timeout'])
})

t.test('if the client does not read during the idle timeout, the error is client_stalled', async t => {
  const { clock, deadlines, codes } = setUp()
  deadlines.upstreamActive()
  clock.advance(2_000)
  deadlines.clientBlocked()
  clock.advance(2_999)
  t.strictSame(codes(), [])
  deadlines.clientActive()
  clock.advance(2_999)
  t.strictSame(codes(), [])
  clock.advance(1)
  t.strictSame(codes(), ['idle_timeout'])
  const blocked = setUp()
  blocked.deadlines.waiting()
  blocked.deadlines.clientBlocked()
  blocked.clock.advance(3_000)
  t.strictSame(blocked.codes(), ['client_stalled'])
  blocked.deadlines.upstreamActive()
  blocked.deadlines.clientBlocked()
  blocked.clock.advance(3_000)
  t.strictSame(blocked.codes(), ['client_stalled', 'client_stalled'])
})

t.test('the total timeout counts from the start of the request, not of the attempt', async t => {
  const clock = new FakeClock()
  clock.advance(90_000)
  const codes: string[] = []
  const deadlines = new Deadlines(clock, TIMEOUTS, 10_000, error => codes.push(error.code))
  deadlines.upstreamActive()
  for (let i = 0; i < 19; i++) {
    clock.advance(1_000)
    deadlines.upstreamActive()
  }
  t.strictSame(codes, [])
  clock.advance(1_000)
  t.strictSame(codes, ['total_timeout'])
})

t.test('a request whose total timeout has passed ends at once', async t => {
  const clock = new FakeClock()
  clock.advance(200_000)
  const codes: string[] = []
  new Deadlines(clock, TIMEOUTS, 10_000, error => codes.push(error.code)).connecting()
  clock.advance(0)
  t.strictSame(codes, ['total_timeout'])
})

t.test('no deadline fires after stop', async t => {
  const { clock, deadlines, codes } = setUp()
  deadlines.connecting()
  deadlines.stop()
  clock.advance(1_000_000)
  t.strictSame(codes(), [])
  t.equal(clock.pending, 0)
})

t.test('a deadline fires once, with status 504', async t => {
  const { clock, deadlines, expired } = setUp()
  deadlines.connecting()
  clock.advance(1_000_000)
  t.equal(expired.length, 1)
  t.equal(expired[0]?.status, 504)
})

t.test('activity creates no new timer', async t => {
  const { clock, deadlines } = setUp()
  deadlines.upstreamActive()
  const { pending } = clock
  for (let i = 0; i < 1_000; i++) deadlines.upstreamActive()
  t.equal(clock.pending, pending)
  for (let i = 0; i < 1_000; i++) {
    deadlines.clientBlocked()
    deadlines.clientActive()
  }
  t.equal(clock.pending, pending)
})

t.test('idleMs is the time since the last activity', async t => {
  const { clock, deadlines } = setUp()
  deadlines.waiting()
  clock.advance(700)
  t.equal(deadlines.idleMs, 700)
  deadlines.upstreamActive()
  t.equal(deadlines.idleMs, 0)
})

t.test('a phase after an expired deadline has its own deadline', t => {
  const { clock, deadlines, codes } = setUp()
  deadlines.upstreamActive()
  clock.advance(TIMEOUTS.idle)
  deadlines.clientBlocked()
  clock.advance(TIMEOUTS.idle)
  t.strictSame(codes(), ['idle_timeout', 'client_stalled'])
  t.end()
})
