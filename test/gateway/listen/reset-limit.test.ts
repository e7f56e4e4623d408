import t from 'tap'
import { ResetLimit } from '../../../src/gateway/listen/reset-limit.ts'
import { FakeClock } from '../../support/fake-clock.ts'

function limitOf(perMinute?: number) {
  const clock = new FakeClock()
  const blocked: string[] = []
  const limit = new ResetLimit({
    clock,
    ...(perMinute === undefined ? {} : { perMinute }),
    isExempt: address => address === '10.0.0.1',
    onBlocked: (address, seconds) => void blocked.push(`${address} for ${seconds} s`),
  })
  /** @returns how many of the `streams` resets are allowed */
  const abandon = (address: string, streams: number) => {
    let allowed = 0
    for (let n = 0; n < streams; n++) if (limit.allows(address)) allowed++
    return allowed
  }
  return { clock, limit, blocked, abandon }
}

t.test('an address can reset 3,000 streams at once, and then 50 per second', async t => {
  const { clock, limit, blocked, abandon } = limitOf()
  t.equal(abandon('192.0.2.1', 3_000), 3_000)
  for (let second = 0; second < 600; second++) {
    clock.advance(1_000)
    t.equal(abandon('192.0.2.1', 50), 50)
  }
  t.equal(limit.blocks('192.0.2.1'), false)
  t.strictSame(blocked, [])
})

t.test('an address above the limit is refused for a minute, which is reported once', async t => {
  const { clock, limit, blocked, abandon } = limitOf(100)
  t.equal(abandon('192.0.2.1', 105), 100)
  t.equal(limit.blocks('192.0.2.1'), true)
  t.equal(limit.blocks('192.0.2.2'), false)
  t.equal(abandon('192.0.2.2', 10), 10, 'other addresses are not limited')
  clock.advance(59_999)
  t.equal(limit.blocks('192.0.2.1'), true)
  clock.advance(1)
  t.equal(limit.blocks('192.0.2.1'), false)
  t.strictSame(blocked, ['192.0.2.1 for 60 s'])
  t.equal(abandon('192.0.2.1', 105), 100)
  t.equal(blocked.length, 2)
})

t.test('further resets of a refused address prolong the refusal', async t => {
  const { clock, limit, abandon } = limitOf(100)
  abandon('192.0.2.1', 101)
  clock.advance(30_000)
  t.equal(abandon('192.0.2.1', 60), 50)
  clock.advance(59_999)
  t.equal(limit.blocks('192.0.2.1'), true)
})

t.test('all IPv6 addresses of a network share one limit', async t => {
  const { limit, abandon } = limitOf(100)
  abandon('2001:db8:1:2::1', 60)
  abandon('2001:db8:1:2:3:4:5:6', 60)
  for (const address of ['2001:db8:1:2::7', '2001:db8:1:2:ffff::']) t.equal(limit.blocks(address), true, address)
  for (const address of ['2001:db8:1:3::1', '2001:db8:1::2', '::1']) t.equal(limit.blocks(address), false, address)
  t.equal(abandon('::1', 100), 100)
  t.equal(abandon('::2', 1), 0, 'both addresses belong to the same network')
})

t.test('trusted proxies and connections without an address are not limited', async t => {
  const { limit, abandon } = limitOf(100)
  for (const address of ['10.0.0.1', '']) {
    t.equal(abandon(address, 1_000), 1_000)
    t.equal(limit.blocks(address), false)
  }
})

t.test('the limit forgets the oldest of more than 10,000 addresses', async t => {
  const { limit, abandon } = limitOf(100)
  abandon('192.0.2.1', 101)
  for (let n = 0; n < 9_999; n++) abandon(`198.51.${n >> 8}.${n & 255}`, 1)
  t.equal(limit.blocks('192.0.2.1'), true)
  abandon('203.0.113.1', 1)
  t.equal(limit.blocks('192.0.2.1'), false)
})
