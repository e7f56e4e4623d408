import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { maskedText } from '../../../src/config/text/masked.ts'

t.test('literal secrets are masked; references to the environment are shown', async t => {
  t.equal(maskedText(`# HUSH1in2a3comment
upstreams:
  one: { url: https://one.example, auth: { bearer: "\${KEY}" },
    headers: { x-a: HUSH, x-b: "pre HUSH \${X:-HUSH}" } }
  two: # the key was HUSH
    url: \${URL:-https://two.example}
    auth:
      header: x-api-key
      value: 12345678
routes: [{ model: [a, "b*"], to: one }]
keys:
  - { name: plain, key: HUSH-HUSH }
  - { name: referred, key: "\${TEAM}" }
  - { name: defaulted, key: "\${TEAM:-HUSH}" }
  - { name: hashed, sha256: ${'0123456789abcdef'.repeat(4)} }
console: { listen: 8081, users: [{ name: ops, password: "scrypt:HUSH", role: admin }] }
`), `# ***
upstreams:
  one: { url: https://one.example, auth: { bearer: "\${KEY}" },
    headers: { x-a: ***, x-b: "***\${X:-***}" } }
  two: # the key *** ***
    url: \${URL:-https://two.example}
    auth:
      header: x-api-key
      value: ***
routes: [{ model: [a, "b*"], to: one }]
keys:
  - { name: plain, key: *** }
  - { name: referred, key: "\${TEAM}" }
  - { name: defaulted, key: "\${TEAM:-***}" }
  - { name: hashed, sha256: 01234567… }
console: { listen: 8081, users: [{ name: ops, password: "***", role: admin }] }
`)
})

/** Configurations with SECRET in an unusual place. */
const PLACES: Readonly<Record<string, string>> = {
  'a list of headers': 'upstreams: { one: { headers: { x-a: [SECRET, "SECRET b"] } } }',
  'the userinfo of a URL': 'upstreams: { one: { url: https://user:SECRET@one.example } }',
  'the userinfo of a URL with escapes': String.raw`upstreams: { one: { url: "https:\/\/user:SECRET@one.example" } }`,
  'the query of a URL': 'upstreams: { one: { url: "https://one.example/?key=SECRET" } }',
  'the query of a URL with escapes': String.raw`upstreams: { one: { url: "https:\/\/one.example\/?key=SECRET" } }`,
  'a command': 'upstreams: { one: { auth: { bearer: { command: [vault, "--token=SECRET", -f, SECRET] } } } }',
  'a literal block': 'upstreams:\n  one:\n    auth:\n      bearer: |\n        SECRET\n\n        SECRET more\n    url: https://one.example',
  'a folded block': 'upstreams:\n  one:\n    auth:\n      bearer: >-\n        SECRET\n        # SECRET\n    url: https://one.example',
  'a plain value on several lines': 'upstreams:\n  one:\n    auth:\n      bearer: SECRET\n        SECRET\n    url: https://one.example',
  'a quoted value on several lines': 'upstreams:\n  one:\n    auth:\n      bearer: "SECRET\n        SECRET ${X:-SECRET\n        SECRET}"\n    url: https://one.example',
  'an anchor where no secret belongs': 'routes: [{ model: &a SECRET, to: one }]\nkeys: [{ name: x, key: *a }]',
  'a map behind an alias': 'upstreams:\n  one: &one { auth: &auth { bearer: SECRET } }\n  two: { <<: *one, auth: *auth }',
  'the name of an anchor': 'upstreams: { one: { auth: { bearer: &SECRET of mine } } }',
  'a comment that names the secret': 'auth: keys # password: SECRET',
  'a comment beside a credential': 'keys:\n  - name: x\n    key: ${KEY} # SECRET',
  'a comment above a credential': 'keys:\n  - name: x\n    # SECRET\n    key: ${KEY}',
  'a comment below a comment that names the secret': '# the token of the team:\n# SECRET\nauth: keys',
  'a commented-out value': '# upstreams: { one: { auth: { bearer: SECRET } } }\nauth: keys',
  'a URL in a comment': '# see https://me:SECRET@one.example/?x=SECRET\nauth: keys',
  'a comment at the end': 'auth: keys\n# bearer SECRET',
  'a key in place of a name': 'keys:\n  - SECRET 1: yes',
  'a webhook': 'alerts: { webhook: { url: https://hooks.example/SECRET, headers: { authorization: Bearer SECRET } } }',
  'a database': 'cluster: { postgres: "postgres://me:SECRET@host/db", valkey: ["rediss://:SECRET@a", "rediss://:SECRET@b"] }',
  'a text that is not YAML': 'keys: [{ key: SECRET\n  bearer: SECRET # SECRET',
  'a second value of a key': 'keys:\n  - name: x\n    key: SECRET\n    key: SECRET',
  'Windows line ends': 'keys:\r\n  - name: x\r\n    key: |\r\n      SECRET\r\n      SECRET\r\n    # SECRET\r\nauth: keys\r\n',
}

for (const [place, yaml] of Object.entries(PLACES)) {
  // A word, letters with digits, and a text that does not look like a secret.
  for (const secret of ['hunter', 'sk-live-0a1B2c3D4e5F6g7H', 'correct_horse']) {
    t.test(`a secret such as ${secret} is masked in ${place}`, async t => {
      const text = maskedText(yaml.replaceAll('SECRET', secret))
      t.notMatch(text, secret)
      t.equal(text.split('\n').length, yaml.split('\n').length, 'the number of lines stays the same')
    })
  }
}

t.test('an unknown setting is masked only if its name or its value looks like a secret', async t => {
  const yaml = (hidden: string) => `
upstreams:
  one:
    model: gpt-5
    base_model: "gpt-4o-2024-08-06"
    region: eu-west-1
    endpoint: https://mine.openai.azure.com
    auth: { bearer: ${hidden}, ca: private/ca.pem, model: [gpt-5, claude-sonnet-4.5] }
    models: ["gpt-*"]
    owner: ${hidden === '***' ? '***' : 'sk-a1b2c3d4e5f6'}
    key: ${hidden}
    token: ${hidden}
    value: ${hidden}
    nobody_knows: ${hidden}
    alerts: { webhook: { url: ${hidden}, headers: { authorization: ${hidden} } }, budget: [80] }
`
  t.equal(maskedText(yaml('HUSH')), yaml('***'))
})

t.test('in text that is not YAML, values of known settings without secrets are shown', async t => {
  const yaml = (hidden: string, name = 'one', owner = hidden) => `
upstreams:
  ${name}: { ca: "private/ca.pem", region: eu-west-1, auth: { bearer: "${hidden} } }
routes: [{ model: gpt-5, to: other }]
keys: [{ name: first, owner: ${owner}, key: ${hidden} }]
`
  t.equal(maskedText(yaml('HUSH', 'one', 'a1b2c3d4e5f6')), yaml('***', '***'))
})

t.test('comments and formatting are kept', async t => {
  const yaml = `# The gateway of research, see the wiki.
server: { listen: "127.0.0.1:0" }   # port 0 picks one


upstreams:
  one: # the first of two
    url:   https://one.example
    auth: { bearer: "\${KEY}" } # read from the environment
routes: [ { model: [gpt-4o-2024-08-06, "claude-*"], to: one } ] # gpt-4o-2024-08-06 is old
`
  t.equal(maskedText(yaml), yaml)
})

t.test('words of comments that look like secrets are masked', async t => {
  t.equal(maskedText('# was a1b2c3d4e5f6a7b8, or AKIAIOSFODNN7EXAMPLE\nlog: {}\n'), '# was ***, or ***\nlog: {}\n')
})

t.test('aliases and merge keys are shown, and secrets in the anchors are masked', async t => {
  const text = (secret: string) => `
auth: keys
upstreams:
  one: &one { url: https://one.example, auth: &auth { bearer: ${secret} } }
  two: { <<: *one, url: https://two.example }
  three: { url: https://three.example, auth: *auth }
`
  t.equal(maskedText(text('HUSH')), text('***'))
})

t.test('a reference to the environment in place of a digest is shown', async t => {
  const text = maskedText('keys: [{ name: a, sha256: "${DIGEST_OF_TEAM_A}" }]\n')
  t.match(parse(text), { keys: [{ sha256: '${DIGEST_OF_TEAM_A}' }] })
})

t.test('fewer than 20 lines of the example are masked', async t => {
  const example = readFileSync(new URL('../../../gateway.yaml', import.meta.url), 'utf8')
  const masked = maskedText(example).split('\n').filter((line, n) => line !== example.split('\n')[n])
  t.ok(masked.length < 20, masked.join('\n'))
})
