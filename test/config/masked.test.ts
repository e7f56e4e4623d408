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

t.test('the beginning of a secret that starts with & is no anchor that is shown', async t => {
  const auth = '{ bearer: &SECRET of mine }'
  const text = maskedYaml(`upstreams: { one: { url: https://one.example, auth: ${auth} } }\n`)
  t.notMatch(text, 'SECRET')
  t.match(parse(text), { upstreams: { one: { auth: { bearer: '***' } } } })
})

t.test('no comment is shown, wherever it stands', t => {
  const lines = `server: { listen: 127.0.0.1:0,
  body_limit: 1mb }
upstreams:
  one: &one
    url: https://one.example
    headers: { a: b,
      c: d }
  two:
    <<: *one
    auth:
      bearer:
        x

routes:
  - model: [a,
      b]
    to:
      - one

      - two
  -
    to: *one
`.split('\n')
  for (const [at, line] of lines.entries()) {
    const indent = /^ */.exec(line)![0]
    const own = `${indent}# SECRET\n`
    for (const commented of [`${line} # SECRET`, own + line, `\n${own}\n${line}`]) {
      const text = lines.with(at, commented).join('\n')
      t.notMatch(maskedYaml(text), 'SECRET', text)
    }
  }
  t.end()
})

t.test('a digest of the environment stands as it was written', async t => {
  const text = maskedYaml('keys: [{ name: a, sha256: "${DIGEST_OF_TEAM_A}" }]\n')
  t.match(parse(text), { keys: [{ sha256: '${DIGEST_OF_TEAM_A}' }] })
})

t.test('the example is YAML that says the same', async t => {
  const example = readFileSync(new URL('../../gateway.yaml', import.meta.url), 'utf8')
  const { keys: _, ...rest } = parse(example) as Record<string, unknown>
  t.match(parse(maskedYaml(example)), rest)
})
