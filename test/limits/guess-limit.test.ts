import t from 'tap'
import { GuessLimit } from '../../src/limits/guess-limit.ts'
import { FakeClock } from '../support/fake-clock.ts'

function limitOf() {
  const clock = new FakeClock()
  const limited: string[] = []
  const limit = new GuessLimit({
    clock,
    onLimited: address => void limited.push(address),
  })
  /** @returns how many of the `keys` wrong keys are below the limit */
  const guess = (address: string, keys: number) => {
    let allowed = 0
    for (let n = 0; n < keys; n++) if (limit.count(address, 1) === 0) allowed++
    return allowed
  }
  return { clock, limit, limited, guess }
}

t.test('an address can try 100 wrong keys at once, then one every 0.6 s', async t => {
  const { clock, limit, limited, guess } = limitOf()
  t.equal(limit.wait('192.0.2.1'), 0)
  t.equal(guess('192.0.2.1', 3_000), 100)
  t.equal(limit.wait('192.0.2.1'), 600)
  t.equal(guess('192.0.2.2', 10), 10, 'other addresses are not limited')
  clock.advance(600)
  t.equal(guess('192.0.2.1', 10), 1)
  t.strictSame(limited, ['192.0.2.1'], 'reported once a minute')
  clock.advance(60_000)
  t.equal(guess('192.0.2.1', 200), 100)
  t.strictSame(limited, ['192.0.2.1', '192.0.2.1'])
})

t.test('all IPv6 addresses of a network share one limit', async t => {
  const { guess } = limitOf()
  let allowed = 0
  for (let n = 0; n < 300; n++) allowed += guess(`2001:db8:0:1::${n.toString(16)}`, 1)
  t.equal(allowed, 100)
  t.equal(guess('2001:db8:0:2::1', 1), 1)
})

t.test('the number of remembered addresses is bounded', async t => {
  const { limit, guess } = limitOf()
  guess('192.0.2.1', 200)
  for (let n = 0; n < 10_000; n++) guess(`10.1.${n >> 8}.${n & 255}`, 1)
  t.equal(limit.wait('192.0.2.1'), 0, 'the first address is forgotten')
})
