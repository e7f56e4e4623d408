import t from 'tap'
import { compileGlob } from '../../../src/config/glob.ts'
import { createLimiter } from '../../../src/limits/limiter.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { admitted, key, refused, setUp, USD } from './asking.ts'
import { limits } from './limits-of.ts'

t.test('past spend', async t => {
  t.test('past spend counts in its budget period, for the key and for matching model globs', async t => {
    const { limiter } = setUp(null, '2026-11-21T12:00:00Z')
    const team = key(limits({
      budget: { usd: '10', per: 'month' },
      models: {
        'gpt-*': { budget: { usd: '5', per: 'day' } },
        'claude-*': { budget: { usd: '100', per: 'total' } },
      },
    }))
    const row = (model: string | null, date: string, usd: bigint) =>
      ({ key: team, model, startedAt: Date.parse(date), pico: usd * USD })
    limiter.restoreSpend([
      row('claude-opus-4-6', '2025-01-01', 97n),
      row('gpt-5', '2026-11-20', 3n),
      row('gpt-5', '2026-11-21', 2n),
      row('claude-opus-4-6', '2026-11-02', 2n),
      row(null, '2026-11-01', 1n),
    ])
    t.match(refused(limiter, team, { model: 'gpt-5', pico: 3n * USD }), { scope: { model: null } })
    t.match(refused(limiter, team, { model: 'claude-x', pico: USD + 1n }), { scope: { model: 'claude-*' } })
    admitted(limiter, team, { model: 'claude-x', pico: USD })
    admitted(limiter, team, { model: 'gpt-5', pico: USD })
  })

  t.test('past spend that is restored twice counts once, and is restored again for limits of a reload', async t => {
    const { limiter } = setUp()
    const row = { model: null, startedAt: Date.parse('2026-11-21'), pico: 6n * USD }
    const team = key(limits({ budget: { usd: '10', per: 'month' } }))
    limiter.restoreSpend([{ ...row, key: team }])
    limiter.restoreSpend([{ ...row, key: team }])
    admitted(limiter, team, { pico: 4n * USD })

    const reloaded = key(limits({ budget: { usd: '7', per: 'day' } }))
    limiter.restoreSpend([{ ...row, key: reloaded }])
    t.match(refused(limiter, reloaded, { pico: 2n * USD }), { which: 'budget' }, 'past spend counts in the new budget')
    admitted(limiter, reloaded, { pico: USD })
  })

  const day = limits({ budget: { usd: '10', per: 'day' } })
  const month = limits({ budget: { usd: '10', per: 'month' } })
  const globbed = limits({ models: { '*': { budget: { usd: '10', per: 'month' } } } })
  const ways = [
    ['a budget of another period', month, day],
    ['a limit without a budget', month, limits({ concurrent: 5 })],
    ['no limits', month, null],
    ['no limits of models', globbed, limits({ concurrent: 5 })],
  ] as const
  for (const [what, before, meanwhile] of ways) {
    t.test(`past spend is restored to a budget that a reload brings back after ${what}`, async t => {
      const { limiter } = setUp()
      const running = admitted(limiter, key(before), { pico: USD })
      admitted(limiter, key(before), { pico: 2n * USD }).settle({ tokens: 1, pico: 2n * USD })
      admitted(limiter, key(meanwhile), { pico: 4n * USD }).settle({ tokens: 1, pico: 4n * USD })
      const back = key(before)
      const row = { key: back, model: 'gpt-4.1', startedAt: Date.parse('2026-11-21') }
      limiter.restoreSpend([{ ...row, pico: 2n * USD }, { ...row, pico: 4n * USD }])
      t.equal(refused(limiter, back, { pico: 3n * USD + 1n }).which, 'budget')
      admitted(limiter, back, { pico: 3n * USD }).release()
      running.settle({ tokens: 1, pico: USD / 2n })
      t.equal(refused(limiter, back, { pico: 7n * USD / 2n + 1n }).which, 'budget')
      admitted(limiter, back, { pico: 7n * USD / 2n })
      limiter.restoreSpend([{ ...row, pico: 2n * USD }])
      t.equal(refused(limiter, back, { pico: 1n }).which, 'budget', 'once')
    })
  }

  t.test('past spend is restored again when a reload brings default limits back', async t => {
    const { limiter } = setUp(month)
    admitted(limiter, key(null), { pico: 2n * USD }).settle({ tokens: 1, pico: 2n * USD })
    limiter.reconfigure(null)
    limiter.reconfigure(limits({ budget: { usd: '10', per: 'month' } }))
    const startedAt = Date.parse('2026-11-21')
    limiter.restoreSpend([{ key: key(null), model: null, startedAt, pico: 6n * USD }])
    t.equal(refused(limiter, key(null), { pico: 4n * USD + 1n }).which, 'budget')
  })

  t.test('after requests with old and new limits of a key, neither budget can be exceeded', async t => {
    const { limiter } = setUp()
    admitted(limiter, key(month), { pico: 6n * USD })
    admitted(limiter, key(day), { pico: 3n * USD })
    t.equal(refused(limiter, key(month), { pico: 4n * USD + 1n }).which, 'budget')
    t.equal(refused(limiter, key(day), { pico: 7n * USD + 1n }).which, 'budget')
  })

  t.test('past spend is ignored for keys without a budget', async () => {
    const { limiter } = setUp()
    limiter.restoreSpend([{ key: key(null), model: 'gpt-5', startedAt: 0, pico: USD }])
    admitted(limiter, key(null), { pico: USD })
  })
})

t.test('a reload', async t => {
  t.test('a reload keeps the counts, also if limits change', async t => {
    const { limiter } = setUp(limits({ concurrent: 9 }))
    const models = { m: { concurrent: 1 } }
    const before = key(limits({
      requestsPerMinute: 2, tokensPerMinute: 100, budget: { usd: '1', per: 'total' }, models,
    }))
    const running = admitted(limiter, before, { model: 'm', tokens: 60, pico: USD / 2n })
    admitted(limiter, before, { model: null })
    limiter.reconfigure(limits({ concurrent: 3 }))

    const after = key(limits({
      requestsPerMinute: 4, tokensPerMinute: 80, budget: { usd: '2', per: 'total' }, models,
    }))
    t.match(limiter.rateLimitStates(after, null), { requests: { limit: 4, remaining: 2 }, tokens: { remaining: 20 } })
    t.equal(refused(limiter, after, { model: 'm' }).which, 'concurrent')
    t.equal(refused(limiter, after, { model: null, pico: USD * 3n / 2n + 1n }).which, 'budget')
    admitted(limiter, after, { model: null, pico: USD * 3n / 2n })
    t.equal(refused(limiter, after, { model: null }).which, 'concurrent', 'the new default')
    running.settle({ tokens: 10, pico: USD })
    t.equal(limiter.rateLimitStates(after, null).tokens?.remaining, 70)
    admitted(limiter, after, { model: 'm' })
  })

  t.test('during a reload, requests with the old and the new limits of a key are counted in any order', async t => {
    const { limiter } = setUp()
    const before = key(null)
    const after = key(limits({ budget: { usd: '1', per: 'month' }, models: { m: { concurrent: 1 } } }))
    admitted(limiter, before)
    admitted(limiter, after, { model: 'm', pico: USD })
    limiter.reconfigure(limits({ concurrent: 5 }))
    admitted(limiter, before, { model: 'm', pico: USD })
    t.equal(refused(limiter, after, { pico: 1n }).which, 'budget')
    t.equal(refused(limiter, after, { model: 'm' }).which, 'concurrent')
  })

  t.test('a reload can remove all limits and bring them back', async () => {
    const { limiter } = setUp(limits({ requestsPerMinute: 1 }))
    const team = key(null)
    admitted(limiter, team)
    limiter.reconfigure(null)
    admitted(limiter, team)
    limiter.reconfigure(limits({ requestsPerMinute: 1 }))
    refused(limiter, team)
  })

  t.test('a reload removes one limit and keeps the other limits', async t => {
    const { limiter } = setUp()
    const every = { requestsPerMinute: 1, tokensPerMinute: 10, budget: { usd: '1', per: 'day' } } as const
    const wish = { tokens: 10, pico: USD }
    for (const which of ['requestsPerMinute', 'tokensPerMinute', 'budget'] as const) {
      const one = limits({ [which]: every[which] })
      const [all, without] = [key(limits(every), which), key(limits({ ...every, [which]: null }), which)]
      admitted(limiter, all, wish)
      t.ok(refused(limiter, without, wish), which)
      admitted(limiter, key(one, `${which} alone`), wish)
      admitted(limiter, key(limits({ concurrent: 9 }), `${which} alone`), wish)
    }
  })
})

t.test('the state of keys that are no longer used is removed', async t => {
  const clock = new FakeClock()
  const compiled: string[] = []
  const limiter = createLimiter({
    defaults: null,
    clock,
    compileGlob(glob) {
      compiled.push(glob)
      return compileGlob(glob)
    },
  })
  const passing = key(limits({ requestsPerMinute: 1, models: { 'gpt-*': { concurrent: 1 } } }), 'passing')
  admitted(limiter, passing).release()
  clock.advance(60_000)
  const own = limits({ requestsPerMinute: 1 })
  for (let i = 0; i < 40_000; i++) admitted(limiter, key(own, `other ${i}`)).release()
  t.equal(compiled.length, 1)
  admitted(limiter, passing)
  t.equal(compiled.length, 2, 'the state of the key was removed and is created again')
})

t.test('the state of idle keys is removed without losing a count', async t => {
  const { limiter, clock } = setUp()
  const own = limits({ requestsPerMinute: 1, budget: { usd: '1', per: 'month' } })
  const [spent, busy, used] = [key(own, 'spent'), key(limits({ concurrent: 1 }), 'busy'), key(own, 'used')]
  admitted(limiter, spent, { pico: USD }).settle({ tokens: 0, pico: USD })
  admitted(limiter, busy)
  clock.advance(3_600_000)
  for (let i = 0; i < 10_000; i++) admitted(limiter, key(own, `early ${i}`)).release()
  clock.advance(59_000)
  admitted(limiter, used)
  clock.advance(1000)
  for (let i = 0; i < 40_000; i++) admitted(limiter, key(own, `late ${i}`)).release()
  t.equal(refused(limiter, spent, { pico: 1n }).which, 'budget')
  t.equal(refused(limiter, busy).which, 'concurrent')
  t.equal(refused(limiter, used).retryAfterMs, 59_000)
})
