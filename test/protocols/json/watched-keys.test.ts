import t from 'tap'
import { WatchedKeys, loosely } from '../../../src/protocols/json/watched-keys.ts'

const KEYS = new WatchedKeys(['model', 'stream', 'modél'], ['model'], ['maxtokens', 'n'])

const CASES: readonly (readonly [written: string, expected: string | null])[] = [
  ['model', 'model'], ['Model', 'model'], ['MODEL', 'model'], ['mod\\u0065l', 'model'], ['\\u004dodel', 'model'], ['models', null], ['', null],
  ['stream', 'stream'], ['Stream', null], ['\\u0073tream', 'stream'], ['modél', 'modél'], ['mod\\u00e9l', 'modél'],
  ['max_tokens', 'maxtokens'], ['maxTokens', 'maxtokens'], ['MAX-TOKENS', 'maxtokens'], ['_m_a_x_tokens_', 'maxtokens'], ['max tokens', null], ['max_token', null], ['maxto\\u006bens', 'maxtokens'],
  ['maxto\u212aens', 'maxtokens'], ['N', 'n'], ['_n', 'n'], ['m', null], ['constructor', null],
]

for (const [written, expected] of CASES) {
  t.test(`the key "${written}" is ${expected === null ? 'not watched' : `watched as ${expected}`}`, async t => {
    const bytes = Buffer.from(`{"${written}":1}`)
    t.equal(KEYS.find(bytes, 2, bytes.length - 4), expected)
  })
}

t.test('a key that is longer than every spelling of a name is not compared', async t => {
  t.equal(new WatchedKeys(['ab']).longest, 12)
  t.equal(new WatchedKeys(['ab'], [], ['abcd']).longest, 48)
  t.equal(new WatchedKeys([]).longest, 0)
  const all = '\\u0061\\u0062'
  t.equal(new WatchedKeys(['ab']).find(Buffer.from(all), 0, all.length), 'ab')
})

t.test('a key with the same hash as a name does not match', async t => {
  // Both are 3129: 97 * 31 + 122 and 98 * 31 + 91.
  const keys = new WatchedKeys([], [], ['az'])
  t.equal(keys.find(Buffer.from('A-Z'), 0, 3), 'az')
  t.equal(keys.find(Buffer.from('b['), 0, 2), null)
})

t.test('loosely() ignores case and separators', async t => {
  t.equal(loosely('Max_Output-Tokens'), 'maxoutputtokens')
  t.equal(loosely('\u212a'), 'k', 'the Kelvin sign')
})
