import t from 'tap'
import { IN_FLIGHT_RETRY_MS } from '../../src/limits/budget-account.ts'
import { Scope } from '../../src/limits/scope.ts'
import type { Moment } from '../../src/limits/scope.ts'
import type { ScopeLimits } from '../../src/limits/types.ts'

const USD = 10n ** 12n
const NONE: ScopeLimits = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }
const START = Date.parse('2026-11-21T12:00:00Z')
const at = (ms: number): Moment => ({ mono: ms, wall: START + ms })

function scopeWith(limits: Partial<ScopeLimits>): Scope {
  const scope = new Scope(null)
  scope.configure({ ...NONE, ...limits }, at(0))
  return scope
}

const BLOCKED: readonly (readonly [what: string, limits: Partial<ScopeLimits>, request: readonly [tokens: number, pico: bigint | null], expected: object | null])[] = [
  ['no limit', {}, [1e9, null], null],
  ['rate limits without earlier use', { requestsPerMinute: 2, tokensPerMinute: 100 }, [100, null], null],
  ['requests_per_minute: 0', { requestsPerMinute: 0 }, [0, 0n], { which: 'requests', waitMs: Infinity }],
  ['more tokens than the limit of a minute', { tokensPerMinute: 100 }, [101, 0n], { which: 'tokens', waitMs: Infinity }],
  ['concurrent: 0', { concurrent: 0 }, [0, 0n], { which: 'concurrent', waitMs: Infinity }],
  ['a cost above the budget', { budget: { usd: '1', per: 'day' } }, [0, USD + 1n], { which: 'budget', waitMs: Infinity }],
  ['a cost of the whole budget', { budget: { usd: '1', per: 'day' } }, [0, USD], null],
  ['an unknown cost under a budget', { budget: { usd: '1', per: 'day' } }, [0, null], { which: 'unpriced', waitMs: Infinity }],
]

for (const [what, limits, [tokens, pico], expected] of BLOCKED) {
  t.test(`a first request is ${expected === null ? 'admitted' : 'refused'}: ${what}`, async t => {
    const blocking = scopeWith(limits).blockingLimit(tokens, pico, at(0))
    if (expected === null) t.equal(blocking, null)
    else t.match(blocking, expected)
  })
}

t.test('blockingLimit returns the limit with the longest wait', async t => {
  const scope = scopeWith({ requestsPerMinute: 1, tokensPerMinute: 60, concurrent: 1 })
  scope.reserve(30, 0n, at(0))
  t.match(scope.blockingLimit(60, 0n, at(0)), { which: 'requests', waitMs: 60_000 })
  t.match(scope.blockingLimit(60, 0n, at(0), true), { which: 'tokens', waitMs: 30_000 }, 'a response within a session is no request')
  t.match(scope.blockingLimit(0, 0n, at(60_000)), { which: 'concurrent', waitMs: IN_FLIGHT_RETRY_MS })
  t.equal(scope.blockingLimit(0, 0n, at(60_000), true), null, 'a response within a session needs no concurrency')
  scope.releaseConcurrency()
  t.equal(scope.blockingLimit(60, 0n, at(60_000)), null)
})

t.test('a response within a session reserves tokens and cost only', async t => {
  const scope = scopeWith({ requestsPerMinute: 1, tokensPerMinute: 100, concurrent: 1, budget: { usd: '2', per: 'total' } })
  scope.reserve(60, USD, at(0), true)
  t.match(scope.rateLimitState('requests', at(0)), { limit: 1, remaining: 1 })
  t.match(scope.rateLimitState('tokens', at(0)), { limit: 100, remaining: 40 })
  t.equal(scope.blockingLimit(40, USD, at(0)), null)
  t.match(scope.blockingLimit(40, USD + 1n, at(0)), { which: 'budget' })
})

t.test('settlement replaces the reservation by the usage, or keeps the reservation if the usage is unknown', async t => {
  const scope = scopeWith({ tokensPerMinute: 100, budget: { usd: '10', per: 'day' } })
  const first = scope.reserve(50, 4n * USD, at(0))
  t.equal(scope.budgetSpent(START), 0n)
  scope.settle(first, { tokens: 10, pico: USD }, 0)
  t.equal(scope.budgetSpent(START), USD)
  t.match(scope.rateLimitState('tokens', at(0)), { remaining: 90 })
  scope.settle(scope.reserve(50, 4n * USD, at(0)), { tokens: null, pico: null }, 0)
  t.equal(scope.budgetSpent(START), 5n * USD)
  t.match(scope.rateLimitState('tokens', at(0)), { remaining: 40 })
  t.equal(scope.blockingLimit(0, 5n * USD, at(0)), null)
  t.match(scope.blockingLimit(0, 5n * USD + 1n, at(0)), { which: 'budget' })
})

t.test('a limit that is removed and restored keeps its counts', async t => {
  const scope = scopeWith({ requestsPerMinute: 1, budget: { usd: '1', per: 'day' } })
  scope.settle(scope.reserve(0, USD, at(0)), { tokens: 0, pico: USD }, 0)
  scope.configure(null, at(0))
  t.equal(scope.blockingLimit(0, null, at(0)), null)
  t.equal(scope.rateLimitState('requests', at(0)), null)
  t.equal(scope.budgetSpent(START), null)
  scope.configure({ ...NONE, requestsPerMinute: 1, budget: { usd: '1', per: 'day' } }, at(0))
  t.match(scope.blockingLimit(0, 0n, at(0)), { which: 'requests' })
  t.equal(scope.budgetSpent(START), USD)
  scope.configure({ ...NONE, budget: { usd: '2', per: 'day' } }, at(0))
  t.equal(scope.blockingLimit(0, USD, at(0)), null, 'a larger budget has a free part')
  scope.configure({ ...NONE, budget: { usd: '1', per: 'month' } }, at(0))
  t.equal(scope.budgetSpent(START), 0n, 'a budget with another period has its own spend')
})

t.test('a lease has at most a small share of the free limits', async t => {
  const FREE = { tokens: 0, pico: 0n }
  const fits = (limits: Partial<ScopeLimits>, { tokens, pico } = FREE as { tokens: number, pico: bigint | null }) => scopeWith(limits).leasableRequests(tokens, pico, at(0))
  t.equal(fits({ requestsPerMinute: 640 }), 20)
  t.equal(fits({ requestsPerMinute: 639 }), 19)
  t.equal(fits({ tokensPerMinute: 3200 }, { tokens: 10, pico: 0n }), 10)
  t.equal(fits({ tokensPerMinute: 3200 }), Infinity, 'no tokens are used')
  t.equal(fits({ concurrent: 80 }), 10)
  t.equal(fits({ budget: { usd: '32', per: 'day' } }, { tokens: 0, pico: USD / 10n }), 10)
  t.equal(fits({ budget: { usd: '32', per: 'day' } }), Infinity, 'the request costs nothing')
  t.equal(fits({ budget: { usd: '32', per: 'day' } }, { tokens: 0, pico: null }), 0, 'the cost is unknown')
  t.equal(fits({ requestsPerMinute: 640, concurrent: 16 }), 2, 'the tightest limit decides')
  t.equal(fits({}), Infinity)
})

t.test('when a lease is returned, its unused part is released, except the reservations of open requests', async t => {
  const scope = scopeWith({ requestsPerMinute: 10, tokensPerMinute: 100, concurrent: 10, budget: { usd: '10', per: 'day' } })
  const lease = scope.lease({ requests: 4, tokens: 40, pico: 4n * USD }, at(0))
  t.match(scope.rateLimitState('requests', at(0)), { remaining: 6 })
  t.match(scope.rateLimitState('tokens', at(0)), { remaining: 60 })
  t.match(scope.blockingLimit(0, 6n * USD + 1n, at(0)), { which: 'budget' })
  const open = scope.splitLease(lease, 10, USD)
  scope.settleLease(lease, { requests: 2, tokens: 5, pico: 2n * USD }, 0)
  t.match(scope.rateLimitState('requests', at(0)), { remaining: 8 })
  t.match(scope.rateLimitState('tokens', at(0)), { remaining: 85 })
  t.equal(scope.budgetSpent(START), 2n * USD)
  t.equal(scope.blockingLimit(0, 7n * USD, at(0)), null)
  t.match(scope.blockingLimit(0, 7n * USD + 1n, at(0)), { which: 'budget' }, 'the open request still reserves its part')
  scope.settle(open, { tokens: 0, pico: 0n }, 0)
  scope.releaseConcurrency()
  t.match(scope.rateLimitState('tokens', at(0)), { remaining: 95 })
  t.notOk(scope.idle(at(0)))
})

t.test('an open request reserves at most the rest of its lease', async t => {
  const scope = scopeWith({ budget: { usd: '10', per: 'day' } })
  const lease = scope.lease({ requests: 2, tokens: 0, pico: USD }, at(0))
  t.equal(scope.splitLease(lease, 0, 3n * USD).pico, USD)
  t.equal(scope.splitLease(lease, 0, USD).pico, 0n)
})

t.test('a scope is idle if no request runs, its rate buckets are empty and nothing is spent', async t => {
  const scope = scopeWith({ requestsPerMinute: 60 })
  t.ok(scope.idle(at(0)))
  const reservation = scope.reserve(0, null, at(0))
  t.notOk(scope.idle(at(1_000)), 'a request runs')
  scope.releaseConcurrency()
  scope.settle(reservation, { tokens: 0, pico: 0n }, 0)
  t.notOk(scope.idle(at(999)), 'the rate bucket is not empty')
  t.ok(scope.idle(at(1_000)))
  const budgeted = scopeWith({ budget: { usd: '1', per: 'day' } })
  budgeted.settle(budgeted.reserve(0, 1n, at(0)), { tokens: 0, pico: 1n }, 0)
  budgeted.releaseConcurrency()
  t.notOk(budgeted.idle(at(0)))
})

t.test('a budget renews at the end of its period', async t => {
  t.equal(scopeWith({ budget: { usd: '1', per: 'day' } }).renewalMs(at(0)), 12 * 60 * 60_000)
  t.equal(scopeWith({}).renewalMs(at(0)), Infinity)
})

t.test('past spend is added to the budget of a scope if the scope has a budget', async t => {
  const scope = scopeWith({ budget: { usd: '1', per: 'day' } })
  t.ok(scope.restore(USD / 2n, START))
  t.equal(scope.budgetSpent(START), USD / 2n)
  t.equal(scopeWith({}).restore(USD, START), null)
})
