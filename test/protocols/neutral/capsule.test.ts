import fc from 'fast-check'
import t from 'tap'
import { mayHoldCapsule, seal, unseal } from '../../../src/protocols/neutral/capsule.ts'
import type { Capsule } from '../../../src/protocols/neutral/capsule.ts'

const opaque = fc.option(fc.record({ provider: fc.option(fc.string()), value: fc.string({ unit: 'binary' }) }, { noNullPrototype: true }))
const capsules: fc.Arbitrary<Capsule> = fc.record({
  id: fc.option(fc.string()),
  opaque,
  thinking: fc.array(fc.record({ text: fc.option(fc.string({ unit: 'binary' })), opaque }, { noNullPrototype: true })),
}, { noNullPrototype: true })

t.test('what was sealed comes back', async t => {
  fc.assert(fc.property(capsules, capsule => {
    const sealed = seal(capsule) as string
    t.strictSame(unseal(sealed), capsule)
    // The pattern of Anthropic's tool ids, and base64 without padding, which Google's SDKs decode.
    t.match(sealed, /^[a-zA-Z0-9_-]+$/)
    t.equal(sealed.length % 4, 0)
    t.ok(mayHoldCapsule(Buffer.from(`{"id":"${sealed}"}`)))
  }))
})

t.test('anything else is no capsule', async t => {
  for (const text of ['', 'call_1', 'Gateway1', 'Gateway1!!!!', 'Gateway1AAAA', `Gateway1${'A'.repeat(200_000)}`]) {
    t.equal(unseal(text), null, text.slice(0, 20))
  }
})

t.test('a capsule has a bounded size, and so has what it holds', async t => {
  const random = Buffer.from(Array.from({ length: 120_000 }, (_, n) => (n * 7919) ^ (n >> 3)))
  const noise = Array.from({ length: 40_000 }, (_, n) => ((n * 2_654_435_761) >>> 0).toString(36)).join('')
  t.equal(seal({ id: null, opaque: { provider: null, value: noise + random.toString('base64') }, thinking: [] }), null)
  const bomb = seal({ id: null, opaque: { provider: null, value: '0'.repeat(2_000_000) }, thinking: [] }) as string
  t.equal(unseal(bomb), null)
})
