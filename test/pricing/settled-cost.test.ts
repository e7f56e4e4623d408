import t from 'tap'
import type { Price } from '../../src/config/price-types.ts'
import type { QuotedPrice } from '../../src/pricing/prices.ts'
import { addCost, addUsage, mergeCosts, noteCost, provisionalCost, settleCost, settleCostByModel } from '../../src/pricing/settled-cost.ts'
import type { AttemptShare, SettledCost } from '../../src/pricing/settled-cost.ts'
import type { SettledUsage } from '../../src/pricing/settle-usage.ts'
import { blankUsage } from '../../src/protocols/usage/usage.ts'
import type { Usage } from '../../src/protocols/usage/usage.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'
import { readableMeter } from '../support/readable-meter.ts'

const quoted = (price: Price): QuotedPrice => ({ price, version: 'v' })
const usageOf = (usage: Partial<Usage>): Usage => ({ ...blankUsage(), ...usage })

function settled(usage: Partial<Usage>, more: Partial<SettledUsage> = {}): SettledUsage {
  return { usage: usageOf(usage), source: 'reported', billed: true, suspect: false, unread: false, ...more }
}

function bill(more: Partial<SettledCost>): SettledCost {
  return { ...settled({}), costPico: 0n, ...more }
}

const TOKENS: Partial<Usage> = { inputTokens: 3, outputTokens: 2 }

const COSTS: readonly (readonly [what: string, settled: SettledUsage, price: Price | null, expected: bigint | null])[] = [
  ['tokens have the price of the upstream', settled(TOKENS), { input: '1', output: '10' }, 23_000_000n],
  ['without a price the cost is unknown', settled(TOKENS), null, null],
  ['an attempt that is not billed costs 0, also without a price', settled(TOKENS, { billed: false }), null, 0n],
  ['an unread part has an unknown cost', settled(TOKENS, { unread: true }), { input: '1', output: '10' }, null],
  ['an unread part is included in a price per request', settled(TOKENS, { unread: true }), { perRequest: '0.5' }, 500_000_000_000n],
  ['an unread part is not included in a price for input', settled(TOKENS, { unread: true }), { input: '1' }, null],
  ['unread images of a known number', settled({ images: 2 }, { unread: true }), { perImage: '1' }, 2_000_000_000_000n],
  ['unread images of an unknown number', settled({}, { unread: true }), { perImage: '1', perRequest: '1' }, null],
  ['unread reasoning', settled({ images: 2 }, { unread: true }), { perImage: '1', reasoning: '1' }, null],
  ['unread audio', settled({ images: 2 }, { unread: true }), { perImage: '1', outputAudio: '1' }, null],
  ['unread image tokens', settled({ images: 2 }, { unread: true }), { perImage: '1', outputImage: '1' }, null],
  ['an unread attempt that is not billed costs 0', settled(TOKENS, { unread: true, billed: false }), { output: '1' }, 0n],
]

for (const [what, usage, price, expected] of COSTS) {
  t.test(`the cost of an attempt: ${what}`, async t => {
    t.equal(settleCost(usage, price && quoted(price)).costPico, expected)
  })
}

t.test('addUsage keeps quantities that only one of the two usages has', async t => {
  t.strictSame(addUsage(usageOf({ inputTokens: 1, images: 2 }), usageOf({ inputTokens: 10, outputTokens: 3 })), usageOf({ inputTokens: 11, outputTokens: 3, images: 2 }))
  t.equal(addUsage(usageOf({ seconds: 0.1 }), usageOf({ seconds: 0.2 })).seconds, 0.3, 'seconds have no rounding error')
  t.equal(addUsage(usageOf({ outputTokens: 0 }), usageOf({})).outputTokens, 0)
})

t.test('a sum of costs is unknown if one cost is unknown', async t => {
  t.equal(addCost(1n, 2n), 3n)
  t.equal(addCost(null, 2n), null)
  t.equal(addCost(1n, null), null)
})

const SOURCES: readonly (readonly [SettledCost['source'][], SettledCost['source']])[] = [
  [['reported', 'reported'], 'reported'], [['none', 'estimated'], 'estimated'], [['reported', 'none'], 'reported'],
  [['reported', 'estimated'], 'mixed'], [['none', 'none'], 'none'], [['mixed', 'none'], 'mixed'],
]

for (const [sources, expected] of SOURCES) {
  t.test(`attempts with ${sources.join(' and ')} usage together have ${expected} usage`, async t => {
    t.equal(mergeCosts(sources.map(source => ({ record: undefined, bill: bill({ source }) }))).source, expected)
  })
}

t.test('the bill of several attempts is the sum of their bills, and the record of each billed attempt has its share', async t => {
  const records: [AttemptShare, AttemptShare, AttemptShare] = [{}, {}, {}]
  const merged = mergeCosts([
    { record: records[0], bill: bill({ usage: usageOf({ inputTokens: 5, outputTokens: 0 }), costPico: 250_000_000_000n, suspect: true }) },
    { record: records[1], bill: bill({ usage: usageOf({ inputTokens: 9 }), billed: false }) },
    { record: records[2], bill: bill({ usage: usageOf({ outputTokens: 4 }), costPico: null, unread: true }) },
  ])
  t.strictSame(records, [{ inputTokens: 5, outputTokens: 0, costUsd: '0.25' }, {}, { outputTokens: 4 }])
  t.match(merged, { usage: { inputTokens: 14, outputTokens: 4 }, billed: true, suspect: true, unread: true, costPico: null })
  t.match(mergeCosts([{ record: undefined, bill: bill({ billed: false }) }]), { billed: false, suspect: false, unread: false, costPico: 0n })
})

t.test('the share of an attempt that is not billed is not recorded', async t => {
  const record: AttemptShare = {}
  noteCost(record, bill({ usage: usageOf(TOKENS), billed: false }))
  t.strictSame(record, {})
})

t.test('each model that served a part of the response has its own price', async t => {
  const prices = new Map([['helper', quoted({ input: '100', output: '1000' })]])
  const costWith = (others: readonly { readonly model: string | null, readonly usage: Usage }[]) => {
    const makers = { others } as unknown as Parameters<typeof settleCostByModel>[1]
    return settleCostByModel(settled(TOKENS), makers, quoted({ input: '1', output: '10' }), model => prices.get(model) ?? null)
  }
  t.match(costWith([]), { costPico: 23_000_000n, usage: TOKENS })
  t.match(costWith([{ model: 'helper', usage: usageOf(TOKENS) }]), { costPico: 2_323_000_000n, usage: { inputTokens: 6, outputTokens: 4 }, unread: false })
  t.match(costWith([{ model: 'helper', usage: usageOf({ inputTokens: 3 }) }]), { costPico: null, unread: true }, 'its output is unknown')
  t.match(costWith([{ model: 'helper', usage: usageOf({ outputTokens: 3 }) }]), { costPico: null, unread: true }, 'its input is not known')
  t.equal(costWith([{ model: null, usage: usageOf(TOKENS) }]).costPico, null)
  t.equal(costWith([{ model: 'unknown', usage: usageOf(TOKENS) }]).costPico, null)
})

t.test('a running response costs its reported usage, or else its estimated usage', async t => {
  const endpoint = endpointNamed('chat.completions')
  const meter = readableMeter(endpoint)
  const now = (inBackground = false) => provisionalCost(endpoint, { kind: 'stream', meter }, { inputTokens: 7, cachedInputTokens: null, inputAudioTokens: null }, quoted({ input: '1', output: '10' }), inBackground)
  t.match(now(), { source: 'estimated', costPico: 7_000_000n, usage: { inputTokens: 7 } })
  meter.push(Buffer.from('data: {"choices":[{"delta":{"content":"eight by"}}]}\n\n'))
  t.match(now(), { source: 'estimated', costPico: 27_000_000n })
  meter.push(Buffer.from('data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}\n\n'))
  t.match(now(), { source: 'mixed', costPico: 35_000_000n, usage: { inputTokens: 5, outputTokens: 3 } })
  const nothing = provisionalCost(endpoint, { kind: 'none', delivered: false }, null, null, false)
  t.match(nothing, { source: 'none', costPico: null })
})
