import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const console = (rest: string, listen = '127.0.0.1:8081') => `${LEAST}\nauth: open\nconsole: { listen: "${listen}", ${rest} }\n`
const OIDC = 'issuer: "https://login.test/staff", client_id: gateway'

t.test('omitted keys of single sign-on have their defaults', async t => {
  t.match(load(t, console('users: []')).config.console, { publicUrl: null, oidc: null })
  const { config, warnings } = load(t, console(`oidc: { ${OIDC}, client_secret: "\${SECRET}", admins: [a] }`), { SECRET: 's3cret' })
  t.strictSame(warnings.filter(({ message }) => /oidc|single/.test(message)), [])
  t.strictSame(config.console?.oidc, {
    issuer: 'https://login.test/staff', clientId: 'gateway', admins: ['a'], viewers: [], groupsClaim: 'groups', callers: false,
    clientSecret: { value: 's3cret' }, scopes: ['openid', 'email', 'profile'],
  })
  const whole = load(t, console(`public_url: "https://Gateway.test/console/", oidc: { ${OIDC}, viewers: ["*@a.test"], scopes: [groups, openid], groups_claim: a.b }`, ':8081'))
  t.match(whole.config.console, {
    publicUrl: 'https://gateway.test', oidc: { clientSecret: null, scopes: ['openid', 'groups'], groupsClaim: 'a.b', viewers: ['*@a.test'] },
  })
})

t.test('a client secret can be in a file; a missing file is a warning', async t => {
  const file = join(t.testdir({}), 'secret')
  const text = console(`oidc: { ${OIDC}, admins: [a], client_secret: { file: "${file}" } }`)
  t.match(load(t, text).warnings, [{ message: /cannot be read \(ENOENT\); until it can, nobody can log in by single sign-on/ }])
  writeFileSync(file, 's3cret')
  t.match(load(t, text).config.console, { oidc: { clientSecret: { file } } })
})

t.test('error messages name the key and contain no secret', async t => {
  for (const [rest, message] of [
    ['oidc: { client_id: a }', /issuer/],
    ['oidc: { issuer: "http://login.test", client_id: a, client_secret: s3cret }', /this is not an https URL/],
    ['oidc: { issuer: "https://login.microsoftonline.com/common/v2.0", client_id: a }', /issuer of every tenant/],
    ['oidc: { issuer: "https://a.test", client_id: a, client_sekret: s3cret }', /did you mean \\"client_secret\\"/],
    ['oidc: { issuer: "https://a.test", client_id: a, client_secret: { fil: a } }', /did you mean \\"file\\"/],
    ['public_url: gateway.test', /this is not the URL of a host/],
    ['public_url: "https://gateway.test/a"', /this is not the URL of a host/],
  ] as const) {
    const found = JSON.stringify(problems(t, console(rest)))
    t.match(found, message, rest)
    t.notMatch(found, 's3cret', rest)
  }
  t.match(load(t, console(`oidc: { ${OIDC} }`, ':8081')).warnings, [
    { message: 'without console.public_url, single sign-on works in browsers on this machine only' },
    { message: 'nobody can log in: name groups or mail addresses under admins or viewers' },
  ])
})
