import t from 'tap'
import type { Authorization } from '../../../src/upstreams/credentials/credential.ts'
import { Refusals } from '../../../src/upstreams/credentials/refusals.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const authorization = (): Authorization => ({ headersFor: () => [] })

t.test('a refusal is remembered for 30 s, for its credential, endpoint and model', async t => {
  const clock = new FakeClock()
  const refusals = new Refusals(clock)
  const [one, other] = [authorization(), authorization()]
  t.notOk(refusals.has(one, ['chat', 'm']))
  t.ok(refusals.add(one, ['chat', 'm']))
  t.notOk(refusals.add(one, ['chat', 'm']), 'the refusal is known')
  t.ok(refusals.has(one, ['chat', 'm']))
  t.notOk(refusals.has(one, ['chat', 'other']))
  t.notOk(refusals.has(other, ['chat', 'm']))
  clock.advance(29_999)
  t.ok(refusals.has(one, ['chat', 'm']))
  clock.advance(1)
  t.notOk(refusals.has(one, ['chat', 'm']))
  t.ok(refusals.add(one, ['chat', 'm']))
})

t.test('above 1,000 refusals the oldest is forgotten', async t => {
  const refusals = new Refusals(new FakeClock())
  const one = authorization()
  for (let n = 0; n <= 1_000; n++) refusals.add(one, ['chat', String(n)])
  t.notOk(refusals.has(one, ['chat', '0']))
  t.ok(refusals.has(one, ['chat', '1']))
  t.ok(refusals.has(one, ['chat', '1000']))
})
