import fc from 'fast-check'
import t from 'tap'
import { didYouMean, editDistance, nearest } from '../../src/config/nearest.ts'

const KEYS = ['listen', 'tls', 'body_limit', 'trusted_proxies', 'drain']

t.test('nearest finds a key for a word with a wrong, missing, extra or swapped letter', async t => {
  for (const [typed, meant] of [
    ['lisen', 'listen'], ['listten', 'listen'], ['litsen', 'listen'], ['tsl', 'tls'], ['dran', 'drain'],
    ['bodyLimit', 'body_limit'], ['body-limit', 'body_limit'], ['TRUSTED_PROXY', 'trusted_proxies'],
  ] as const) t.equal(nearest(typed, KEYS), meant, typed)
})

t.test('nearest returns null for a word unlike every key', async t => {
  t.equal(nearest('colour', KEYS), null)
  t.equal(nearest('x', KEYS), null)
  t.equal(nearest('', KEYS), null)
  t.equal(nearest('listen', []), null)
})

t.test('nearest returns the most similar of several keys', async t => {
  t.equal(nearest('tokens_per_minut', ['requests_per_minute', 'tokens_per_minute']), 'tokens_per_minute')
  t.equal(nearest('opnai2', ['openai1', 'openai2']), 'openai2')
})

t.test('a word of a million characters has no nearest key', async t => {
  t.equal(nearest('x'.repeat(1_000_000), KEYS), null)
})

t.test('didYouMean returns a question, or an empty text if no key is similar', async t => {
  t.equal(didYouMean('lisen', KEYS), '; did you mean "listen"?')
  t.equal(didYouMean('colour', KEYS), '')
})

t.test('the edit distance is symmetric, and at most the length of the longer word', async t => {
  t.equal(editDistance('ca', 'abc'), 3, 'optimal string alignment: no letter is edited twice')
  t.equal(editDistance('abcd', 'badc'), 2)
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 8 })
  fc.assert(fc.property(word, word, (a, b) => {
    const distance = editDistance(a, b)
    return distance === editDistance(b, a) && (distance === 0) === (a === b)
      && distance >= Math.abs(a.length - b.length) && distance <= Math.max(a.length, b.length)
  }))
})
