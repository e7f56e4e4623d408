import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { maskedYaml } from '../../src/config/masked.ts'

t.test('what was written out is masked, and what is read from the ' +
  'environment stands as it was written', async t => {
  const text = maskedYaml(`# SECRET in a comment
upstreams:
  one: { url: https://one.example, auth: { bearer: "\${KEY}" },
    headers: { x-a: SECRET, x-b: "pre SECRET \${X:-SECRET}" } }
  two: # SECRET
    url: \${URL:-https://two.example}
    auth:
      header: x-api-key
      value: 12345678
routes: [{ model: [a, "b*"], to: one }]
keys:
  - { name: plain, key: SECRET-SECRET }
  - { name: referred, key: "\${TEAM}" }
  - { name: defaulted, key: "\${TEAM:-SECRET}" }
  - { name: hashed, sha256: ${'0123456789abcdef'.repeat(4)} }
console: { listen: 8081, users: [{ name: ops, password: "scrypt:SECRET", role: admin }] }
`)
  t.notMatch(text, /SECRET|12345678/)
  t.same(parse(text), {
    upstreams: {
      one: {
        url: 'https://one.example', auth: { bearer: '${KEY}' },
        headers: { 'x-a': '***', 'x-b': '***${X:-***}' },
      },
      two: { url: '${URL:-https://two.example}', auth: { header: 'x-api-key', value: '***' } },
    },
    routes: [{ model: ['a', 'b*'], to: 'one' }],
    keys: [
      { name: 'plain', key: '***' },
      { name: 'referred', key: '${TEAM}' },
      { name: 'defaulted', key: '${TEAM:-***}' },
      { name: 'hashed', sha256: '01234567…' },
    ],
    console: { listen: 8081, users: [{ name: 'ops', password: '***', role: 'admin' }] },
  })
})

t.test('aliases and merge keys stay, and secrets behind them are masked', async t => {
  const text = maskedYaml(`
auth: keys
upstreams:
  one: &one { url: https://one.example, auth: &auth { bearer: SECRET } }
  two: { <<: *one, url: https://two.example }
  three: { url: https://three.example, auth: *auth }
`)
  t.notMatch(text, 'SECRET')
  t.match(parse(text, { merge: true }), {
    upstreams: { two: { auth: { bearer: '***' } }, three: { auth: { bearer: '***' } } },
  })
})

t.test('the example is YAML that says the same', async t => {
  const example = readFileSync(new URL('../../gateway.yaml', import.meta.url), 'utf8')
  const { keys: _, ...rest } = parse(example) as Record<string, unknown>
  t.match(parse(maskedYaml(example)), rest)
})
