import { pino } from 'pino'
import t, { type Test } from 'tap'
import { FailureLog } from '../../../src/policy/hooks/failure-log.ts'
import type { Hook, HookQuestion, HookResult } from '../../../src/policy/hooks/hook.ts'
import { MAX_WAITING, MAX_WAITING_BYTES, Tap } from '../../../src/policy/hooks/tap.ts'
import { FakeClock } from '../../support/fake-clock.ts'

function start(_t: Test) {
  const clock = new FakeClock()
  const logged: Record<string, unknown>[] = []
  const failures = new FailureLog(clock, pino({}, { write: (line: string) => logged.push(JSON.parse(line) as Record<string, unknown>) }), 'archive', 'copies are lost')
  const asked: { question: HookQuestion, answer: (result: HookResult) => void }[] = []
  const hook = {
    config: { concurrency: 2 },
    ask: (question: HookQuestion) => new Promise<HookResult>(answer => asked.push({ question, answer })),
  } as unknown as Hook
  let drops = 0
  return { tap: new Tap(hook, failures, () => drops++), asked, logged, clock, drops: () => drops }
}

function copy(bytes = 10): HookQuestion {
  return { on: 'request', ids: new Set(), replaces: false, requestId: 'r', body: Buffer.alloc(bytes) }
}

const FAILED: HookResult = { ok: false, failure: 'timeout', detail: 'no reply within 300 ms' }

t.test('copies are sent a few at a time, and one that fails is not sent again', async t => {
  const { tap, asked, logged } = start(t)
  for (let n = 0; n < 3; n++) tap.add(copy())
  t.equal(asked.length, 2)
  t.equal(tap.waiting, 1)
  asked[0]?.answer(FAILED)
  await new Promise(setImmediate)
  t.equal(asked.length, 3)
  t.match(logged, [{ hook: 'archive', why: 'timeout: no reply within 300 ms', count: 1, msg: 'hook archive: copies are lost' }])
  t.equal(tap.dropped, 1)
})

t.test('the queue is bounded in copies and in bytes; drops are counted, and logged once a minute', t => {
  const { tap, clock, logged, drops } = start(t)
  for (let n = 0; n < MAX_WAITING + 10; n++) tap.add(copy())
  t.equal(tap.waiting, MAX_WAITING)
  t.equal(tap.dropped, 8)
  t.equal(drops(), 8)
  t.equal(logged.length, 1)
  clock.advance(60_000)
  tap.add(copy())
  t.match(logged, [{ count: 1 }, { count: 8 }])
  const large = start(t)
  large.tap.add(copy(MAX_WAITING_BYTES))
  large.tap.add(copy(1))
  t.equal(large.tap.dropped, 1)
  t.end()
})
