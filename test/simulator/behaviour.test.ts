import fc from 'fast-check'
import t from 'tap'
import {
  behaviourOfModel,
  BehaviourError,
  GRAMMAR,
  onTurn,
  parseBehaviour,
} from '../../src/simulator/behaviour.ts'

t.test('an empty list of behaviours has no effect', async t => {
  t.same(parseBehaviour(''), {})
  t.same(parseBehaviour(' , ,'), {})
})

t.test('a list of behaviours is parsed with and without spaces', async t => {
  t.same(parseBehaviour('status=503, retry_after=2 ,crlf'), { status: 503, retry_after: 2, crlf: true })
  t.same(parseBehaviour('pace = 20ms'), { pace: 20 })
})

t.test('the last value of a repeated behaviour applies', async t => {
  t.same(parseBehaviour('tokens=1,tokens=2'), { tokens: 2 })
})

t.test('durations are parsed as milliseconds', async t => {
  for (const [text, ms] of [
    ['250ms', 250],
    ['10s', 10_000],
    ['1.5s', 1500],
    ['2m', 120_000],
    ['0s', 0],
  ] as const) {
    t.equal(parseBehaviour(`pace=${text}`).pace, ms, text)
  }
  for (const text of ['10', 's', '-1s', '1h', '1e3ms', '9999999m', '']) {
    t.throws(() => parseBehaviour(`pace=${text}`), BehaviourError, text)
  }
})

t.test('sizes are parsed as bytes', async t => {
  for (const [text, bytes] of [
    ['512', 512],
    ['1b', 1],
    ['64kb', 65_536],
    ['10MB', 10_485_760],
  ] as const) {
    t.equal(parseBehaviour(`huge=${text}`).huge, bytes, text)
  }
  for (const text of ['0', '1gb', '300mb', '-1', '1.5mb']) {
    t.throws(() => parseBehaviour(`huge=${text}`), BehaviourError, text)
  }
})

t.test('the error about an invalid, missing or superfluous value has the behaviour and the allowed values', async t => {
  t.throws(() => parseBehaviour('status=99'), {
    message: /status takes a whole number from 200 to 599, not "99"/,
  })
  t.throws(() => parseBehaviour('status'), { message: /status takes .* not nothing/ })
  t.throws(() => parseBehaviour('reset=1'), { message: 'reset takes no value' })
  t.throws(() => parseBehaviour('usage=odd'), { message: /usage takes one of none, null/ })
})

t.test('the error about an unknown behaviour lists the known behaviours', async t => {
  t.throws(() => parseBehaviour('stall_afer=2'), {
    message: /unknown behaviour "stall_afer"; known are tokens, /,
  })
  t.throws(() => parseBehaviour('constructor=1'), BehaviourError)
  t.throws(() => parseBehaviour('=3'), BehaviourError)
})

t.test('the list of behaviours in a model name starts after the first comma', async t => {
  t.equal(behaviourOfModel('sim'), '')
  t.equal(behaviourOfModel(''), '')
  t.equal(behaviourOfModel('claude-sim,status=503,retry_after=2'), 'status=503,retry_after=2')
})

t.test('the names of behaviours need no escapes in a path segment', async t => {
  for (const key of Object.keys(GRAMMAR)) t.match(`sim,${key}=1`, /^[A-Za-z0-9._~!$&'()*+,;=:@-]+$/)
})

t.test('first and every restrict faults and no other behaviours', async t => {
  const first = parseBehaviour('status=503,tokens=3,pace=1ms,first=2')
  t.same(
    [0, 1, 2, 3].map(turn => onTurn(first, turn).status),
    [503, 503, undefined, undefined],
  )
  t.match(onTurn(first, 2), { tokens: 3, pace: 1 })
  const every = parseBehaviour('reset,every=3')
  t.same(
    [0, 1, 2, 3, 4, 5].map(turn => onTurn(every, turn).reset ?? false),
    [false, false, true, false, false, true],
  )
  const both = parseBehaviour('reset,first=2,every=2')
  t.same(
    [0, 1, 2, 3].map(turn => onTurn(both, turn).reset ?? false),
    [false, true, false, false],
  )
})

t.test('parseBehaviour returns known behaviours or throws a BehaviourError for each text', async t => {
  const key = fc.constantFrom(...Object.keys(GRAMMAR))
  const item = fc.oneof(
    fc.string(),
    key,
    fc.tuple(key, fc.string()).map(([k, v]) => `${k}=${v}`),
  )
  fc.assert(
    fc.property(fc.array(item), items => {
      try {
        const parsed = parseBehaviour(items.join(','))
        return Object.keys(parsed).every(name => name in GRAMMAR)
      } catch (error) {
        return error instanceof BehaviourError
      }
    }),
  )
  t.pass('held')
})
