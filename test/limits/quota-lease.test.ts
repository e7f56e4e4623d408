import t from 'tap'
import { QuotaLease } from '../../src/limits/quota-lease.ts'
import { Scope } from '../../src/limits/scope.ts'
import { FakeClock } from '../support/fake-clock.ts'

const USD = 10n ** 12n

/** A lease of 4 requests, 40 tokens and 4 USD, of a key and a glob of models. */
function leased() {
  const clock = new FakeClock('2026-11-21T12:00:00Z')
  const now = { mono: 0, wall: clock.wall() }
  const scopes = [new Scope(null), new Scope('gpt-*')]
  for (const scope of scopes) {
    scope.configure({ requestsPerMinute: 10, tokensPerMinute: 100, concurrent: 4, budget: { usd: '10', per: 'day' } }, now)
  }
  const size = { requests: 4, tokens: 40, pico: 4n * USD }
  const lease = new QuotaLease(size, 100, scopes.map(scope => scope.lease(size, now)), clock)
  const state = () => scopes.map(scope => ({
    requests: scope.rateLimitState('requests', now)?.remaining, tokens: scope.rateLimitState('tokens', now)?.remaining, spent: scope.budgetSpent(now.wall),
  }))
  const isFull = () => scopes.map(scope => scope.blockingLimit(0, 0n, now)?.which === 'concurrent')
  return { lease, state, isFull }
}

t.test('an unused lease returns everything to each scope', async t => {
  const { lease, state, isFull } = leased()
  t.strictSame(state(), [{ requests: 6, tokens: 60, spent: 0n }, { requests: 6, tokens: 60, spent: 0n }])
  t.strictSame(isFull(), [true, true])
  t.strictSame(lease.settle({ requests: 0, tokens: 0, pico: 0n, open: [] }), [])
  t.strictSame(state(), [{ requests: 10, tokens: 100, spent: 0n }, { requests: 10, tokens: 100, spent: 0n }])
  t.strictSame(isFull(), [false, false])
})

t.test('settle returns a reservation for each open request, in the same order', async t => {
  const { lease, state, isFull } = leased()
  const open = lease.settle({ requests: 3, tokens: 5, pico: USD, open: [{ tokens: 10, pico: USD }, { tokens: 20, pico: null }] })
  t.equal(open.length, 2)
  t.strictSame(state()[1], { requests: 7, tokens: 65, spent: USD })
  open[1]?.release()
  t.strictSame(state(), [{ requests: 7, tokens: 85, spent: USD }, { requests: 7, tokens: 85, spent: USD }])
  open[0]?.settle({ tokens: 10, pico: 2n * USD })
  t.strictSame(state()[0], { requests: 7, tokens: 85, spent: 3n * USD })
  t.strictSame(isFull(), [false, false])
})

t.test('invalid usage never increases the free amount', async t => {
  const { lease, state } = leased()
  lease.settle({ requests: 4, tokens: -1000, pico: -USD, open: [{ tokens: -5, pico: -USD }] })
  t.strictSame(state()[0], { requests: 6, tokens: 100, spent: 0n })
})
