import t from 'tap'
import type { LimitedKey } from '../../src/limits/types.ts'
import { admitted, key, refused, setUp, USD } from '../behaviour/limits/asking.ts'
import { limits } from '../behaviour/limits/limits-of.ts'

t.test('a key without limits is never refused and has no limit headers', async t => {
  const { limiter } = setUp()
  const free = key(null)
  for (let i = 0; i < 1000; i++) admitted(limiter, free, { tokens: 1e9, pico: null })
  t.strictSame(limiter.rateLimitStates(free, 'gpt-4.1'), { requests: null, tokens: null })
})

t.test('requests per minute are limited', async t => {
  const { limiter, clock } = setUp()
  const team = key(limits({ requestsPerMinute: 3 }))
  for (let i = 0; i < 3; i++) admitted(limiter, team).release()
  t.match(refused(limiter, team), {
    which: 'requests',
    scope: { key: 'team', model: null },
    retryAfterMs: 20_000,
    renewsSoon: true,
    message: /3 requests per minute/,
  })
  clock.advance(19_999)
  t.equal(refused(limiter, team).retryAfterMs, 1)
  clock.advance(1)
  admitted(limiter, team)
  t.strictSame(limiter.rateLimitStates(team, null).requests, { limit: 3, remaining: 0, resetMs: 60_000 })
})

t.test('a refused request does not count', async () => {
  const { limiter, clock } = setUp()
  const team = key(limits({ requestsPerMinute: 1 }))
  admitted(limiter, team)
  for (let i = 0; i < 100; i++) refused(limiter, team)
  clock.advance(60_000)
  admitted(limiter, team)
})

t.test('the estimated tokens are reserved, and unused tokens are returned at settlement', async t => {
  const { limiter } = setUp()
  const team = key(limits({ tokensPerMinute: 1000 }))
  const first = admitted(limiter, team, { tokens: 900 })
  t.match(refused(limiter, team, { tokens: 200 }), { which: 'tokens', retryAfterMs: 6000, renewsSoon: true })
  first.settle({ tokens: 100, pico: null })
  t.strictSame(limiter.rateLimitStates(team, null).tokens, { limit: 1000, remaining: 900, resetMs: 6000 })
  admitted(limiter, team, { tokens: 900 })
})

t.test('tokens beyond the estimate delay later requests', async t => {
  const { limiter } = setUp()
  const team = key(limits({ tokensPerMinute: 1000 }))
  admitted(limiter, team, { tokens: 1 }).settle({ tokens: 3000, pico: null })
  t.match(refused(limiter, team, { tokens: 1 }), { retryAfterMs: 120_060, renewsSoon: false })
  t.strictSame(limiter.rateLimitStates(team, null).tokens, { limit: 1000, remaining: 0, resetMs: 180_000 })
  admitted(limiter, team, { tokens: 0 })
})

t.test('a request above the whole limit is refused at once as too large', async t => {
  const { limiter } = setUp()
  const team = key(limits({ tokensPerMinute: 1000 }))
  for (const tokens of [1001, 1e15, 1e308, Infinity, NaN]) {
    t.match(refused(limiter, team, { tokens }), {
      which: 'tokens', retryAfterMs: null, renewsSoon: false, message: /too large/,
    })
  }
  admitted(limiter, team, { tokens: 1000 })
})

t.test('negative estimates count as 0, and fractions are rounded up', async t => {
  const { limiter } = setUp()
  const team = key(limits({ tokensPerMinute: 10, budget: { usd: '1', per: 'day' } }))
  admitted(limiter, team, { tokens: -1e6, pico: -USD })
  t.equal(limiter.rateLimitStates(team, null).tokens?.remaining, 10)
  admitted(limiter, team, { tokens: 0.1 }).settle({ tokens: -5, pico: -USD })
  t.equal(limiter.rateLimitStates(team, null).tokens?.remaining, 10)
  admitted(limiter, team, { tokens: 9.5, pico: USD })
  t.equal(limiter.rateLimitStates(team, null).tokens?.remaining, 0)
  t.equal(refused(limiter, team, { pico: 1n }).which, 'budget')
})

t.test('concurrency is released before usage is counted', async t => {
  const { limiter } = setUp()
  const team = key(limits({ concurrent: 1, tokensPerMinute: 100 }))
  const first = admitted(limiter, team, { tokens: 80 })
  t.equal(refused(limiter, team).which, 'concurrent')
  first.releaseConcurrency()
  first.releaseConcurrency()
  t.equal(refused(limiter, team, { tokens: 80 }).which, 'tokens', 'the estimated tokens stay reserved')
  const second = admitted(limiter, team, { tokens: 10 })
  t.equal(refused(limiter, team).which, 'concurrent')
  first.settle({ tokens: 5, pico: 0n })
  t.equal(refused(limiter, team).which, 'concurrent', 'concurrency is released only once')
  second.release()
  admitted(limiter, team, { tokens: 80 })
})

t.test('concurrent requests are limited', async t => {
  const { limiter } = setUp()
  const team = key(limits({ concurrent: 2 }))
  const first = admitted(limiter, team)
  const second = admitted(limiter, team)
  t.match(refused(limiter, team), { which: 'concurrent', retryAfterMs: 1000, renewsSoon: true })
  first.settle({ tokens: 0, pico: 0n })
  admitted(limiter, team)
  refused(limiter, team)
  second.release()
  admitted(limiter, team)
  t.match(refused(limiter, key(limits({ concurrent: 0 }), 'none')), { retryAfterMs: null, renewsSoon: false })
})

t.test('a reservation is settled or released only once', async t => {
  const { limiter } = setUp()
  const team = key(limits({ tokensPerMinute: 1000, concurrent: 2, budget: { usd: '1', per: 'day' } }))
  const wish = { tokens: 500, pico: USD / 2n }
  const first = admitted(limiter, team, wish)
  admitted(limiter, team, wish)
  first.settle({ tokens: 400, pico: USD / 4n })
  first.settle({ tokens: 0, pico: 0n })
  first.release()
  first.settle({ tokens: 9999, pico: 100n * USD })
  t.equal(limiter.rateLimitStates(team, null).tokens?.remaining, 100)
  t.equal(refused(limiter, team, { pico: USD / 4n + 1n }).which, 'budget')
  admitted(limiter, team, { pico: USD / 4n })
  t.equal(refused(limiter, team).which, 'concurrent')
})

t.test('the estimate counts as used if the usage is unknown', async t => {
  const { limiter } = setUp()
  const team = key(limits({ tokensPerMinute: 1000, budget: { usd: '1', per: 'total' } }))
  admitted(limiter, team, { tokens: 400, pico: USD / 2n }).settle({ tokens: null, pico: null })
  admitted(limiter, team, { tokens: 300, pico: USD / 4n }).settle({ tokens: NaN, pico: null })
  t.equal(limiter.rateLimitStates(team, null).tokens?.remaining, 300)
  t.match(refused(limiter, team, { pico: USD / 4n + 1n }), { retryAfterMs: null, renewsSoon: false })
  admitted(limiter, team, { pico: USD / 4n })
})

t.test('budgets', async t => {
  t.test('a budget can be spent to the last picodollar, and renews with its period', async t => {
    const { limiter, clock } = setUp(null, '2026-11-21T23:00:00Z')
    const team = key(limits({ budget: { usd: '1', per: 'day' } }))
    admitted(limiter, team, { pico: USD }).settle({ tokens: 0, pico: USD - 1n })
    t.match(refused(limiter, team, { pico: 2n }), {
      which: 'budget', retryAfterMs: 3_600_000, renewsSoon: false, message: /1 USD per day/,
    })
    admitted(limiter, team, { pico: 1n })
    clock.advance(3_599_999)
    t.match(refused(limiter, team, { pico: 2n }), { retryAfterMs: 1, renewsSoon: true })
    clock.advance(1)
    admitted(limiter, team, { pico: USD })
  })

  t.test('a cost beyond the estimate is charged in full', async t => {
    const { limiter } = setUp()
    const team = key(limits({ budget: { usd: '10', per: 'month' } }))
    admitted(limiter, team, { pico: 1n }).settle({ tokens: 0, pico: 11n * USD })
    t.equal(refused(limiter, team, { pico: 1n }).which, 'budget')
    admitted(limiter, team, { pico: 0n })
  })

  t.test('a model without a price is refused only when a budget applies', async t => {
    const { limiter } = setUp()
    const team = key(limits({ models: { 'gpt-*': { budget: { usd: '10', per: 'month' } } } }))
    t.match(refused(limiter, team, { model: 'gpt-5', pico: null }), {
      which: 'unpriced', scope: { key: 'team', model: 'gpt-*' }, retryAfterMs: null, renewsSoon: false,
      message: /No price for this model/,
    })
    admitted(limiter, team, { model: 'claude-opus-4-6', pico: null }).settle({ tokens: 1, pico: null })
  })

  t.test('a request that runs over midnight is charged to the day in which it began', async t => {
    const { limiter, clock } = setUp(null, '2026-12-31T23:59:00Z')
    for (const per of ['day', 'month'] as const) {
      clock.setDate('2026-12-31T23:59:00Z')
      const team = key(limits({ budget: { usd: '1', per } }), per)
      const over = admitted(limiter, team, { pico: USD })
      const free = admitted(limiter, team, { pico: 0n })
      clock.advance(60_000)
      const next = admitted(limiter, team, { pico: USD })
      over.settle({ tokens: 0, pico: 5n * USD })
      free.settle({ tokens: 0, pico: 5n * USD })
      next.settle({ tokens: 0, pico: USD / 2n })
      t.equal(refused(limiter, team, { pico: USD / 2n + 1n }).which, 'budget')
      admitted(limiter, team, { pico: USD / 2n })
      clock.setDate('2026-12-31T23:59:59.999Z')
      t.equal(refused(limiter, team, { pico: 1n }).retryAfterMs, 1, 'the budget of the old day is overspent')
    }
  })
})

t.test('of several exceeded limits, the limit with the longest wait is reported', async t => {
  const { limiter, clock } = setUp(null, '2026-11-21T12:00:00Z')
  const team = key(limits({
    requestsPerMinute: 1, tokensPerMinute: 10, concurrent: 1, budget: { usd: '1', per: 'day' },
  }))
  admitted(limiter, team, { tokens: 10, pico: USD }).settle({ tokens: 20, pico: USD })
  const refusals = [
    refused(limiter, team),
    refused(limiter, team, { tokens: 10 }),
    refused(limiter, team, { tokens: 10, pico: 1n }),
    refused(limiter, team, { tokens: 10, pico: null }),
  ]
  t.strictSame(refusals.map(({ which, retryAfterMs, renewsSoon }) => [which, retryAfterMs, renewsSoon]), [
    ['requests', 60_000, true], ['tokens', 120_000, false],
    ['budget', 43_200_000, false], ['unpriced', null, false],
  ])
  clock.advance(60_000)
  admitted(limiter, team)
})

t.test('a refused request reserves nothing, even at limits that would admit the request', async t => {
  const { limiter } = setUp()
  const team = key(limits({
    requestsPerMinute: 2, tokensPerMinute: 10, concurrent: 2, budget: { usd: '1', per: 'day' },
    models: { small: { tokensPerMinute: 5 } },
  }))
  for (let i = 0; i < 10; i++) {
    t.equal(refused(limiter, team, { tokens: 11, pico: USD }).which, 'tokens')
    t.equal(refused(limiter, team, { tokens: 10, pico: USD + 1n }).which, 'budget')
    t.equal(refused(limiter, team, { tokens: 6, pico: USD, model: 'small' }).scope.model, 'small')
  }
  t.strictSame(limiter.rateLimitStates(team, 'small'), {
    requests: { limit: 2, remaining: 2, resetMs: 0 },
    tokens: { limit: 5, remaining: 5, resetMs: 0 },
  })
  admitted(limiter, team, { tokens: 10, pico: USD })
  admitted(limiter, team)
})

t.test('limits of models inside a key', async t => {
  t.test('each glob has one count for all models that it matches', async t => {
    const { limiter } = setUp()
    const team = key(limits({ requestsPerMinute: 4, models: { 'gpt-*': { requestsPerMinute: 2 } } }))
    admitted(limiter, team, { model: 'gpt-4.1' })
    admitted(limiter, team, { model: 'gpt-5' })
    t.match(refused(limiter, team, { model: 'gpt-4.1' }), { scope: { key: 'team', model: 'gpt-*' } })
    admitted(limiter, team, { model: 'claude-opus-4-6' })
    admitted(limiter, team, { model: null })
    t.match(refused(limiter, team, { model: 'claude-opus-4-6' }), { scope: { key: 'team', model: null } })
  })

  t.test('all matching globs apply, and the headers show the tightest limit', async t => {
    const { limiter } = setUp()
    const team = key(limits({
      tokensPerMinute: 100,
      models: { 'gpt-*': { tokensPerMinute: 1000 }, '*-mini': { tokensPerMinute: 50, requestsPerMinute: 9 } },
    }))
    admitted(limiter, team, { model: 'gpt-5-mini', tokens: 20 })
    t.match(limiter.rateLimitStates(team, 'gpt-5-mini'), {
      requests: { limit: 9, remaining: 8 }, tokens: { limit: 50, remaining: 30 },
    })
    t.match(limiter.rateLimitStates(team, 'gpt-5'), { requests: null, tokens: { limit: 100, remaining: 80 } })
    t.equal(refused(limiter, team, { model: 'gpt-5-mini', tokens: 40 }).scope.model, '*-mini')
  })
})

t.test('defaults apply to each key separately', async t => {
  const { limiter } = setUp(limits({ requestsPerMinute: 1, tokensPerMinute: 10 }))
  const [first, second] = [key(null, 'first'), key(limits({ requestsPerMinute: 2 }), 'second')]
  admitted(limiter, first)
  refused(limiter, first)
  admitted(limiter, second)
  admitted(limiter, second)
  refused(limiter, second)
  t.equal(refused(limiter, second, { tokens: 11 }).retryAfterMs, null)
})

t.test('a change of the date does not affect rate limits', async t => {
  const { limiter, clock } = setUp()
  const team = key(limits({ requestsPerMinute: 1, tokensPerMinute: 60 }))
  admitted(limiter, team, { tokens: 60 })
  for (const date of ['1970-01-01', '2099-01-01', '2026-11-21']) {
    clock.setDate(date)
    t.equal(refused(limiter, team, { tokens: 60 }).retryAfterMs, 60_000)
  }
  clock.advance(60_000)
  clock.setDate('2001-01-01')
  admitted(limiter, team, { tokens: 60 })
})

const group = (name: string, own: Parameters<typeof limits>[0]): LimitedKey => ({ name, limits: limits(own), isGroup: true })

t.test('one reservation counts a request against its key and all groups of the key', async t => {
  const { limiter } = setUp()
  const company = group('company', { concurrent: 3 })
  const research = group('research', { concurrent: 2 })
  const of = (name: string, ...groups: LimitedKey[]): LimitedKey => ({ name, limits: null, groups })
  const [a, b, c] = [of('a', research, company), of('b', research, company), of('c', company)]
  const first = admitted(limiter, a)
  admitted(limiter, b)
  t.match(refused(limiter, a), {
    which: 'concurrent', scope: { key: 'a', group: 'research', model: null },
    message: 'Too many requests at once for the group research: 2 may run at a time.',
  })
  admitted(limiter, c)
  t.match(refused(limiter, c), { scope: { key: 'c', group: 'company' } })
  first.release()
  admitted(limiter, c)
  t.match(refused(limiter, b), { scope: { group: 'company' } }, 'the group research has room, the group company has none')
})

t.test('a request that a group refuses reserves nothing at its key or the other groups', async t => {
  const { limiter } = setUp()
  const company = group('company', { budget: { usd: '1', per: 'total' } })
  const a: LimitedKey = { name: 'a', limits: limits({ requestsPerMinute: 5, budget: { usd: '10', per: 'total' } }), groups: [company] }
  for (let n = 0; n < 20; n++) t.match(refused(limiter, a, { pico: 2n * USD }), { which: 'budget', scope: { group: 'company' } })
  t.equal(limiter.rateLimitStates(a, null).requests?.remaining, 5)
  t.match(refused(limiter, a, { pico: null }), { which: 'unpriced' })
  admitted(limiter, a, { pico: USD }).settle({ tokens: 1, pico: USD / 2n })
  t.match(refused(limiter, a, { pico: USD }), { scope: { group: 'company' } })
  admitted(limiter, { name: 'b', limits: null, groups: [company] }, { pico: USD / 2n })
  t.strictSame([...limiter.budgetSpend()], [['a', USD / 2n], ['group\ncompany', USD / 2n]])
})

t.test('the defaults of keys do not apply to groups, even if a group has the name of a key', async t => {
  const { limiter } = setUp(limits({ concurrent: 1 }))
  const same = group('same', { concurrent: 2 })
  admitted(limiter, { name: 'same', limits: null, groups: [same] })
  admitted(limiter, { name: 'other', limits: null, groups: [same] })
  t.match(refused(limiter, { name: 'third', limits: null, groups: [same] }), { scope: { group: 'same' } })
  t.match(refused(limiter, { name: 'same', limits: null }), { scope: { key: 'same', group: null } })
})

t.test('past spend of a group is restored once', async t => {
  const { limiter } = setUp()
  const company = group('company', { budget: { usd: '1', per: 'total' } })
  limiter.restoreSpend([{ key: company, model: null, startedAt: 0, pico: USD - 1n }])
  const a = { name: 'a', limits: null, groups: [company] }
  t.match(refused(limiter, a, { pico: 2n }), { which: 'budget', scope: { group: 'company' } })
  admitted(limiter, a, { pico: 1n })
})
