import { createHash } from 'node:crypto'
import t from 'tap'
import { consoleKeyName, isReservedName } from '../../../src/config/sections/keys.ts'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const SECRET = 'sk-0123456789abcdef'
const DIGEST = createHash('sha256').update(SECRET).digest('hex')
const withKeys = (...keys: string[]) => `${LEAST}keys:\n${keys.map(key => `  - ${key}\n`).join('')}`

t.test('the configuration has the digest and the first characters of a key', async t => {
  const [own, hashed] = load(t, withKeys(`{ name: a, key: ${SECRET} }`, `{ name: b, sha256: ${'0a'.repeat(32)} }`)).config.keys
  t.equal(own?.digest.toString('hex'), DIGEST)
  t.equal(own?.prefix, 'sk-01234')
  t.equal(own?.line, 4)
  t.equal(hashed?.digest.toString('hex'), '0a'.repeat(32))
  t.equal(hashed?.prefix, undefined)
  t.match(own, { models: null, limits: null })
  t.notOk(Object.hasOwn(own ?? {}, 'owner'))
})

t.test('a key can have models, a group, an owner, a note and an expiry', async t => {
  const [key] = load(t, `${withKeys(`{ name: a, key: ${SECRET}, models: ["gpt-*"], group: g, owner: research, note: batch, expires: 2999-01-01 }`)}groups: { g: {} }\n`).config.keys
  t.match(key, { models: ['gpt-*'], group: 'g', owner: 'research', note: 'batch', expiresAt: Date.parse('2999-01-01') })
})

const PROBLEMS: readonly (readonly [what: string, keys: readonly string[], expected: object])[] = [
  ['no secret', ['{ name: a }'], { severity: 'error', line: 4, message: 'keys[0] needs key or sha256' }],
  ['two secrets', [`{ name: a, key: ${SECRET}, sha256: ${DIGEST} }`], { severity: 'error', message: 'keys[0] has both key and sha256; remove one' }],
  ['the name of another key', [`{ name: a, key: ${SECRET} }`, `{ name: a, key: ${SECRET}2 }`], { severity: 'error', line: 5, message: 'the key on line 4 has the same name; give each its own' }],
  ['the secret of another key', [`{ name: a, key: ${SECRET} }`, `{ name: b, sha256: ${DIGEST} }`], { severity: 'error', line: 5, message: 'the key on line 4 has the same value; give each its own' }],
  ['a name that is reserved for console users', [`{ name: "console:ops", key: ${SECRET} }`], { severity: 'error', message: /are reserved for console users/ }],
  ['a space in its secret', ['{ name: a, key: "sk-0123456789 abcdef" }'], { severity: 'error', message: /visible ASCII characters only/ }],
  ['a short secret', ['{ name: a, key: sk-0123456789ab }'], { severity: 'warning', message: /^keys of fewer than 16 characters can be guessed/ }],
  ['an expiry in the past', [`{ name: a, key: ${SECRET}, expires: 2001-01-01 }`], { severity: 'warning', message: 'the key has expired; it is refused' }],
  ['an expiry on a day that does not exist', [`{ name: a, key: ${SECRET}, expires: 2027-02-30 }`], { severity: 'error', message: /there is no day 2027-02-30/ }],
]

for (const [what, keys, expected] of PROBLEMS) {
  t.test(`a key with ${what} is reported`, async t => {
    const found = problems(t, withKeys(...keys))
    t.match(found, [expected])
    t.notMatch(JSON.stringify(found), SECRET.slice(3), 'the secret is not shown')
  })
}

t.test('the configuration has no first characters of a short key', async t => {
  t.equal(load(t, withKeys('{ name: a, key: sk-0123456789abc }')).config.keys[0]?.prefix, 'sk-01234')
  t.equal(load(t, withKeys('{ name: a, key: sk-0123456789ab }')).config.keys[0]?.prefix, undefined)
})

t.test('the example key is the first key that is the default of a variable', async t => {
  const text = withKeys(`{ name: a, key: ${SECRET} }`, '{ name: b, key: "${DEMO_KEY:-sk-example-key-0001}" }')
  const { exampleKey, config } = load(t, text)
  t.equal(exampleKey, 'sk-example-key-0001')
  t.equal(config.keys[1]?.digest.toString('hex'), createHash('sha256').update('sk-example-key-0001').digest('hex'))
  t.equal(load(t, text, { DEMO_KEY: 'sk-fedcba9876543210' }).exampleKey, null)
})

t.test('names that begin with "console:" are reserved for users of the console', async t => {
  t.ok(isReservedName(consoleKeyName('ops')))
  t.notOk(isReservedName('my-console:ops'))
  t.notOk(isReservedName('Console:ops'))
})
