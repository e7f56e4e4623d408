import t from 'tap'
import { CapsuleKeys, createCapsuleKey } from '../../../src/base/secrets/capsule-keys.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const DAY = 24 * 60 * 60 * 1000

t.test('a key makes capsules for 30 days, has a successor a day before, and opens capsules for 180 days', async t => {
  const clock = new FakeClock()
  const keys = new CapsuleKeys(clock)
  const first = keys.newest
  const from = clock.wall()
  t.equal(first.from, from)
  clock.setDate(from + 29 * DAY - 1)
  keys.renew()
  t.equal(keys.all.length, 1)
  clock.setDate(from + 29 * DAY)
  keys.renew()
  keys.renew()
  t.equal(keys.all.length, 2)
  const second = keys.all[1]!
  t.equal(keys.newest, first, 'other gateways may not know the second yet')
  clock.setDate(from + 30 * DAY)
  t.equal(keys.newest, second)
  t.equal(keys.find(first.id), first)
  clock.setDate(from + 180 * DAY - 1)
  t.equal(keys.find(first.id), first)
  clock.setDate(from + 180 * DAY)
  t.equal(keys.find(first.id), null)
  clock.setDate(from + 1000 * DAY)
  t.equal(keys.find(second.id), second, 'the one that makes capsules opens them too, however old it is')
})

t.test('processes with the same keys use the same newest key, in whatever order the keys are added', async t => {
  const clock = new FakeClock()
  const given = [createCapsuleKey(clock.wall() - DAY), createCapsuleKey(clock.wall()), createCapsuleKey(clock.wall())]
  const [one, other] = [new CapsuleKeys(clock), new CapsuleKeys(clock)]
  one.add(given)
  other.add(given.toReversed())
  t.equal(one.newest.id, other.newest.id)
  t.not(one.newest.id, given[0]!.id)
})

t.test('a key with a future date is kept, and does not stop the rotation', async t => {
  const clock = new FakeClock('2030-01-01T00:00:00Z')
  const keys = new CapsuleKeys(clock)
  const future = keys.newest
  clock.setDate('2026-01-01T00:00:00Z')
  t.equal(keys.newest, future)
  keys.renew()
  t.equal(keys.all.length, 2)
  clock.setDate('2026-01-02T00:00:00Z')
  t.equal(keys.newest, keys.all[1])
  t.equal(keys.find(future.id), future)
})

t.test('the given key is the first key', async t => {
  const first = createCapsuleKey(0)
  t.equal(new CapsuleKeys(new FakeClock(), first).newest, first)
  t.equal(new CapsuleKeys(new FakeClock(), first).find(first.id), first, 'also of a process that has made no capsule yet')
})
