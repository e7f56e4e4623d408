import t from 'tap'
import { effectiveLimits } from '../../src/limits/effective-limits.ts'
import { limits } from '../behaviour/limits/limits-of.ts'

t.test('a field that a key does not set has the value of the defaults', async t => {
  const own = limits({ requestsPerMinute: 5, budget: { usd: '1', per: 'day' } })
  const defaults = limits({ requestsPerMinute: 9, tokensPerMinute: 900, budget: { usd: '7', per: 'month' } })
  t.strictSame(effectiveLimits(own, defaults).whole, {
    requestsPerMinute: 5,
    tokensPerMinute: 900,
    concurrent: null,
    budget: { usd: '1', per: 'day' },
  })
})

t.test('a limit of 0 counts as set', async t => {
  t.equal(effectiveLimits(limits({ concurrent: 0 }), limits({ concurrent: 3 })).whole.concurrent, 0)
})

t.test('globs of key and defaults are merged field by field', async t => {
  const own = limits({ models: { 'gpt-*': { concurrent: 2 }, 'o*': { requestsPerMinute: 1 } } })
  const ofAll = { 'gpt-*': { concurrent: 8, tokensPerMinute: 50 }, '*': { concurrent: 1 } }
  const defaults = limits({ models: ofAll })
  const { models } = effectiveLimits(own, defaults)
  const none = { requestsPerMinute: null, tokensPerMinute: null, concurrent: null, budget: null }
  t.strictSame([...models], [
    ['gpt-*', { ...none, concurrent: 2, tokensPerMinute: 50 }],
    ['o*', { ...none, requestsPerMinute: 1 }],
    ['*', { ...none, concurrent: 1 }],
  ])
})

t.test('the key or the defaults can be absent', async t => {
  t.equal(effectiveLimits(null, limits({ concurrent: 3 })).whole.concurrent, 3)
  t.equal(effectiveLimits(limits({ concurrent: 3 }), null).whole.concurrent, 3)
  t.equal(effectiveLimits(null, null).whole.concurrent, null)
})
