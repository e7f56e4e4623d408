import t from 'tap'
import { CapsuleKeys, createCapsuleKey } from '../../../src/base/secrets/capsule-keys.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const DAY = 24 * 60 * 60 * 1000

t.test('a capsule key seals for 30 days and opens for 180 days, and its successor exists a day before the change', async t => {
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
  t.equal(keys.newest, first, 'for the first day the successor seals no capsules, because other gateways may not have it')
  clock.setDate(from + 30 * DAY)
  t.equal(keys.newest, second)
  t.equal(keys.find(first.id), first)
  clock.setDate(from + 180 * DAY - 1)
  t.equal(keys.find(first.id), first)
  clock.setDate(from + 180 * DAY)
  t.equal(keys.find(first.id), null)
  clock.setDate(from + 1000 * DAY)
  t.equal(keys.find(second.id), second, 'the newest key opens capsules at any age')
})

t.test('processes with the same keys have the same newest key, whatever the order in which the keys are added', async t => {
  const clock = new FakeClock()
  const given = [createCapsuleKey(clock.wall() - DAY), createCapsuleKey(clock.wall()), createCapsuleKey(clock.wall())]
  const [one, other] = [new CapsuleKeys(clock), new CapsuleKeys(clock)]
  one.add(given)
  other.add(given.toReversed())
  t.equal(one.newest.id, other.newest.id)
  t.not(one.newest.id, given[0]!.id)
})

t.test('a key with a future date is kept and does not prevent the creation of the next key', async t => {
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

t.test('the key that the constructor gets is the newest key', async t => {
  const first = createCapsuleKey(0)
  t.equal(new CapsuleKeys(new FakeClock(), first).newest, first)
  t.equal(new CapsuleKeys(new FakeClock(), first).find(first.id), first, 'a process can find its first key before it seals a capsule')
})
