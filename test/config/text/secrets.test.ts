import t from 'tap'
import { readSchema } from '../../../src/config/json-schema.ts'
import { parseYaml } from '../../../src/config/text/document.ts'
import { isPlainName, looksRandom, maskUrls, secretPlaces, secretRanges, unknownWords } from '../../../src/config/text/secrets.ts'
import { SourceText } from '../../../src/config/text/source-text.ts'

const SCHEMA = readSchema()

/** @returns the secrets in the text */
function secretsIn(text: string, find: 'all' | 'values' | 'words' = 'all'): string[] {
  const source = new SourceText(text)
  const { root } = parseYaml(source, {})
  const ranges = find === 'words' ? unknownWords(source, SCHEMA) : find === 'values' ? secretPlaces(source, root, SCHEMA).values : secretRanges(source, root, SCHEMA)
  return ranges.map(({ start, end }) => text.slice(start, end))
}

const CASES: readonly (readonly [what: string, text: string, expected: readonly string[]])[] = [
  ['a file without credentials', 'server: { listen: ":8080", workers: 2 }\n', []],
  ['a key', 'keys: [{ name: team-a, key: sk-secret }]\n', ['sk-secret']],
  ['a mistyped key', 'keys: [{ name: team-a, kye: sk-secret }]\n', ['sk-secret']],
  ['a key in quotes', "keys: [{ name: team-a, key: 'sk secret' }]\n", ["'sk secret'"]],
  ['a bearer token', 'upstreams: { a: { url: "https://a.example", auth: { bearer: sk-secret } } }\n', ['sk-secret']],
  ['a header', 'upstreams: { a: { headers: { X-Api-Key: sk-secret } } }\n', ['sk-secret']],
  ['a password in a URL', 'upstreams: { a: { url: "https://me:hunter2@a.example/x" } }\n', ['me:hunter2']],
  ['a query in a URL', 'upstreams: { a: { url: "https://a.example/x?key=hunter2" } }\n', ['key=hunter2']],
  ['the URL of a store', 'cluster: { postgres: "postgres://u:p@ss/w?rd@db/x" }\n', ['"postgres://u:p@ss/w?rd@db/x"']],
  ['a password of a store in a setting that takes no URL', 'ledger: { file: "postgres://u:p@ss/w?rd@db/x" }\n', ['u:p@ss/w?rd@db/x']],
  ['a secret where a key belongs', 'keys: [{ name: a, sk-0123456789abcdef: }]\n', ['sk-0123456789abcdef']],
  ['an escaped password in a URL', 'upstreams: { a: { url: "https:\\/\\/me:hunter2@a.example" } }\n', ['"https:\\/\\/me:hunter2@a.example"']],
  ['an escaped query in a URL', 'upstreams: { a: { url: "https:\\/\\/a.example?key=hunter2" } }\n', ['"https:\\/\\/a.example?key=hunter2"']],
  ['a comment', 'auth: open # was sk-secret\n', [' was sk-secret']],
  ['a text with # and &', 'ledger: { file: "a # b &c" }\n', []],
  ['an unknown setting with the name of a credential', 'secret_token: hunter2\n', ['hunter2']],
  ['a value that an alias repeats', 'x: &k sk-secret\nkeys: [{ name: a, key: *k }]\n', ['sk-secret', '*k']],
  ['a value that YAML reads as an anchor', 'keys: [{ name: a, key: &hunter2 }]\n', ['hunter2']],
]

for (const [what, text, expected] of CASES) {
  t.test(`${what} ${expected.length === 0 ? 'has no secret' : 'is a secret'}`, async t => t.strictSame(secretsIn(text), expected))
}

t.test('secretPlaces returns no text of comments among the secret values', async t => {
  t.strictSame(secretsIn('keys: [{ name: a, key: sk-secret }] # sk-old\n', 'values'), ['sk-secret'])
})

t.test('in text that is not YAML each word that the schema does not know is a secret', async t => {
  t.strictSame(secretsIn('keys: [{ name: a, key: sk-secret\n', 'words'), ['sk-secret'])
  t.strictSame(secretsIn('server: { listen: 8080 ]\n', 'words'), [])
  t.strictSame(secretsIn('key: ${SECRET} hunter2 {\n', 'words'), ['hunter2'])
})

for (const [text, expected] of [
  ['password', false], ['a-long-name-of-many-words', false], ['x'.repeat(23), false], ['x'.repeat(24), true], ['a1b2c3d', false], ['a1b2c3d4', true], ['12345678', false], ['aBcde', false], ['aBcDeF', true], ['gateway-a1b2c3d4', true],
] as const) {
  t.test(`${text} ${expected ? 'looks' : 'does not look'} random`, async t => t.equal(looksRandom(text), expected))
}

for (const [name, expected] of [
  ['body_limit', true], ['X-Key', true], ['<<', true], ['sk2', false], ['', false], ['_x', false], ['a'.repeat(25), true], ['a'.repeat(26), false], ['name value', false],
] as const) {
  t.test(`"${name}" is ${expected ? 'accepted' : 'not accepted'} as a plain name`, async t => t.equal(isPlainName(name), expected))
}

t.test('credentials in URLs are masked in any text', async t => {
  t.equal(maskUrls('at https://u:p@a.example/b?c=d and http://a.example', '***'), 'at https://***@a.example/b?*** and http://a.example')
  t.equal(maskUrls('ops@example.com', '***'), 'ops@example.com')
})
