import { deepStrictEqual } from 'node:assert/strict'
import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { CapsuleKeys } from '../../../src/base/secrets/capsule-keys.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { mayHoldCapsule, seal } from '../../../src/protocols/neutral/capsule.ts'
import type { Capsule } from '../../../src/protocols/neutral/capsule.ts'
import { CAPSULES, capsuleReader, opened, sealed } from '../../support/capsules.ts'

const opaque = fc.option(fc.record({ provider: fc.option(fc.string()), value: fc.string({ unit: 'binary' }) }, { noNullPrototype: true }))
const capsules: fc.Arbitrary<Capsule> = fc.record({
  id: fc.option(fc.string({ minLength: 1 })),
  opaque,
  thinking: fc.array(fc.record({ text: fc.option(fc.string({ unit: 'binary' })), opaque }, { noNullPrototype: true })),
}, { noNullPrototype: true })
const NOTHING: Capsule = { id: null, opaque: null, thinking: [] }
const OTHER_PLACE = sealed('opaque_value', { id: 'call_1', opaque: { provider: 'p', value: 'sig' } })
const CALL = sealed('tool_id', { id: 'call_1', opaque: { provider: 'p', value: 'sig' } })

t.test('property: an opened capsule has the sealed content', async () => {
  fc.assert(fc.property(capsules, capsule => {
    const text = seal(CAPSULES.keys, 'opaque_value', capsule) as string
    deepStrictEqual(opened('opaque_value', text), capsule)
    // The pattern of Anthropic's tool ids, and base64 without padding, which Google's SDKs decode.
    return /^[a-zA-Z0-9_-]+$/.test(text) && text.length % 4 === 0 && mayHoldCapsule(Buffer.from(`{"id":"${text}"}`))
  }))
})

t.test('a text without the mark is not a capsule', async t => {
  for (const text of ['', 'call_1', 'gateway1', ` ${CALL}`]) {
    t.equal(opened('tool_id', text), null, text)
    t.equal(capsuleReader().toolId(text, 'field'), text)
  }
})

/** Invalid capsules: nothing is read, and the field is reported. */
const REFUSED: Readonly<Record<string, string>> = {
  'the mark alone': 'Gateway1',
  'a capsule of an older version': `Gateway1${deflateRawSync('["call_1",["p","sig"],[]]').toString('base64url')}`,
  'a capsule with a changed byte': CALL.slice(0, -1) + (CALL.endsWith('A') ? 'B' : 'A'),
  'a capsule with another MAC': CALL.slice(0, 16) + 'A'.repeat(32) + CALL.slice(48),
  'a capsule with another key': CALL.slice(0, 8) + 'AAAAAAAA' + CALL.slice(16),
  'a capsule that is cut': CALL.slice(0, -4),
  'a capsule with more characters': `${CALL}AAAA`,
  'a capsule that is cut in the MAC': CALL.slice(0, 30),
  'a capsule with invalid characters': `${CALL.slice(0, 20)}é\u0141${CALL.slice(22)}`,
  'a capsule for another place': OTHER_PLACE,
  'a capsule of another gateway': seal(new CapsuleKeys(systemClock), 'tool_id', { ...NOTHING, id: 'call_1' }) as string,
  'a long text with the mark of a capsule': `Gateway1${'A'.repeat(200_000)}`,
}

for (const [name, text] of Object.entries(REFUSED)) {
  t.test(`${name} is read as empty, and is reported as dropped`, async t => {
    const dropped: string[] = []
    const { id, ...rest } = capsuleReader(dropped).open('tool_id', text, 'calls[].id') as Capsule
    t.strictSame(rest, { opaque: null, thinking: [] })
    t.match(id, /^call_[0-9a-f]{24}$/)
    t.equal(capsuleReader(dropped).toolId(text, 'results[].id'), id, 'the call and its result still have the same id')
    t.strictSame(dropped, ['calls[].id', 'results[].id'])
    t.strictSame(capsuleReader().open('opaque_value', text === OTHER_PLACE ? CALL : text, 'f'), NOTHING)
  })
}

t.test('the id of a call is read from its capsule', async t => {
  t.equal(capsuleReader().toolId(CALL, 'id'), 'call_1')
})

t.test('memory is reserved before a capsule is inflated', async t => {
  const reserved: number[] = []
  const reader = capsuleReader([], bytes => void reserved.push(bytes))
  const text = sealed('opaque_value', { opaque: { provider: 'p', value: 'x'.repeat(1000) } })
  reader.open('opaque_value', text, 'f')
  t.strictSame(reserved, [Buffer.byteLength(JSON.stringify([['p', 'x'.repeat(1000)], []]))])
})

t.test('a capsule has at least a third of the size of its content', async t => {
  for (const length of [0, 10, 1000, 100_000]) {
    const value = '0'.repeat(length)
    const text = sealed('opaque_value', { opaque: { provider: null, value } })
    t.strictSame(opened('opaque_value', text)?.opaque?.value, value)
    t.ok(text.length * 3 >= length, `${text.length} characters for ${length}`)
  }
  t.equal(sealed('opaque_value', { opaque: { provider: null, value: '0'.repeat(2_000_000) } }), null, 'too long')
})
