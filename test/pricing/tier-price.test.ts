import t from 'tap'
import type { Price } from '../../src/config/price-types.ts'
import type { QuotedPrice } from '../../src/pricing/prices.ts'
import { hasCacheWriteRate, highestCost, isPricedByRequest, priceFor } from '../../src/pricing/tier-price.ts'
import { blankUsage } from '../../src/protocols/usage/usage.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'
import { readableMeter } from '../support/readable-meter.ts'

function quoted(price: Price, tiers: Readonly<Record<string, Price>> | null = null): QuotedPrice {
  if (tiers === null) return { price, version: 'v' }
  return { price, version: 'v', serviceTiers: new Map(Object.entries(tiers).map(([name, own]) => [name, { price: own, version: `v, ${name}` }])) }
}

const TIERED = quoted({ input: '2' }, { flex: { input: '1' }, priority: { input: '4' } })
const body = (response: object) => ({ kind: 'body', body: Buffer.from(JSON.stringify(response)) }) as const

t.test('a response has the price of the service tier that the upstream reports', async t => {
  t.equal(priceFor(TIERED, body({ service_tier: 'flex' }))?.version, 'v, flex')
  t.equal(priceFor(TIERED, body({ service_tier: 'default' })), TIERED, 'a tier without a price')
  t.equal(priceFor(TIERED, body({ service_tier: 'constructor' })), TIERED)
  t.equal(priceFor(TIERED, body({})), TIERED)
  t.equal(priceFor(TIERED, { kind: 'none', delivered: true }), TIERED)
  t.equal(priceFor(TIERED, null), TIERED)
  t.equal(priceFor(null, body({ service_tier: 'flex' })), null)
  const plain = quoted({ input: '2' })
  t.equal(priceFor(plain, body({ service_tier: 'flex' })), plain)
})

t.test('a stream has the price of its service tier', async t => {
  const meter = readableMeter(endpointNamed('chat.completions'))
  t.equal(priceFor(TIERED, { kind: 'stream', meter }), TIERED)
  meter.push(Buffer.from('data: {"service_tier":"priority","choices":[]}\n\n'))
  t.equal(priceFor(TIERED, { kind: 'stream', meter })?.version, 'v, priority')
})

const WRITES: readonly (readonly [what: string, quoted: QuotedPrice | null, expected: boolean])[] = [
  ['no price', null, false],
  ['a price without cache writes', quoted({ input: '1' }), false],
  ['a rate for 5-minute writes', quoted({ cacheWrite5m: '1' }), true],
  ['a rate for 1-hour writes', quoted({ cacheWrite1h: '1' }), true],
  ['a tier for long inputs', quoted({ input: '1', tiers: [{ above: 1, price: { input: '2' } }, { above: 2, price: { cacheWrite1h: '1' } }] }), true],
  ['a service tier with cache writes', quoted({ input: '1' }, { flex: { cacheWrite5m: '1' } }), true],
  ['a service tier without cache writes', quoted({ input: '1' }, { flex: { input: '1' } }), false],
]

for (const [what, price, expected] of WRITES) {
  t.test(`a price ${expected ? 'has a' : 'has no'} rate for cache writes: ${what}`, async t => t.equal(hasCacheWriteRate(price), expected))
}

const FIXED: readonly (readonly [what: string, quoted: QuotedPrice | null, expected: boolean])[] = [
  ['no price', null, false],
  ['a price per request', quoted({ perRequest: '0.01' }), true],
  ['all rates are 0', quoted({ input: '0', output: '0.00' }), true],
  ['a price per request and per token', quoted({ perRequest: '0.01', output: '1' }), false],
  ['tokens that cost nothing', quoted({ perRequest: '0.01', output: '0' }), true],
  ['a tier for long inputs', quoted({ perRequest: '0.01', tiers: [{ above: 1, price: { input: '1' } }] }), false],
  ['a free tier for long inputs', quoted({ perRequest: '0.01', tiers: [{ above: 1, price: { input: '0' } }] }), true],
  ['one service tier of several', quoted({ perRequest: '1' }, { flex: { perRequest: '1' }, priority: { input: '1' } }), false],
  ['all service tiers', quoted({ perRequest: '1' }, { flex: { perRequest: '2' } }), true],
]

for (const [what, price, expected] of FIXED) {
  t.test(`a price ${expected ? 'is' : 'is not'} equal for every request: ${what}`, async t => t.equal(isPricedByRequest(price), expected))
}

t.test('highestCost uses the most expensive usage, price and tier', async t => {
  const usage = (inputTokens: number) => ({ ...blankUsage(), inputTokens })
  t.equal(highestCost([usage(10), usage(30), usage(20)], [quoted({ input: '1' })]), 30_000_000n)
  t.equal(highestCost([usage(10)], [quoted({ input: '1' }), quoted({ input: '3' }), quoted({ input: '2' })]), 30_000_000n)
  t.equal(highestCost([usage(10)], [TIERED]), 40_000_000n)
  t.equal(highestCost([usage(10)], [quoted({ input: '1' }), null]), null, 'a missing price makes the highest cost unknown')
  t.equal(highestCost([usage(10)], []), 0n)
})
