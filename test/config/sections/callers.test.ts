import t from 'tap'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const ISSUER = 'issuer: https://login.example.com/realms/x'
const GROUPS = 'groups: { research: {} }\n'

t.test('an issuer with everything, and its defaults', async t => {
  const { config, warnings } = load(t, `${LEAST}${GROUPS}auth: keys
callers:
  - name: corp
    ${ISSUER}
    audience: [model-gateway, other]
    jwks: http://127.0.0.1:9/certs
    jwks_grace: 1h
    algorithms: [RS256]
    caller: realm.mail
    require: { department: ai, kind: [a, "b-*"] }
    groups: { claim: roles, map: { "platform-*": research }, default: research }
    limits: { requests_per_minute: 60, budget: { usd: 20, per: month } }
  - { name: least, ${ISSUER}, audience: a, require: { a: b } }
`)
  t.strictSame(warnings.filter(({ message }) => /key|caller/.test(message)), [])
  t.match(config.callers, [
    {
      name: 'corp', issuer: 'https://login.example.com/realms/x', audience: ['model-gateway', 'other'], jwks: 'http://127.0.0.1:9/certs',
      jwksGrace: 3_600_000, algorithms: ['RS256'], caller: 'realm.mail', groups: { claim: 'roles', default: 'research' },
      limits: { requestsPerMinute: 60, budget: { usd: '20', per: 'month' } },
    },
    { audience: ['a'], jwks: null, jwksGrace: 86_400_000, caller: 'sub', groups: null, limits: null },
  ])
  t.strictSame([...config.callers[0]!.require], [['department', ['ai']], ['kind', ['a', 'b-*']]])
  t.strictSame([...config.callers[0]!.groups!.map], [['platform-*', 'research']])
  t.ok(config.callers[1]!.algorithms.includes('ES256'))
  t.notOk(config.callers[1]!.algorithms.some(algorithm => /^(none|HS)/.test(algorithm)))
})

t.test('wrong issuers are errors that say what to do', async t => {
  const wrong = (entry: string, more = '') => problems(t, `${LEAST}${GROUPS}${more}callers:\n  - { name: corp, ${entry} }\n`)
    .map(({ severity, message }) => `${severity}: ${message}`)
  const good = `${ISSUER}, audience: a`
  const require = 'require: { a: b }'
  const cases: [string, RegExp, string?][] = [
    [`issuer: "http://login.example.com", audience: a, ${require}`, /error: this is not an https URL; plain http is for loopback/],
    [`${good}, ${require}, jwks: "http://login.example.com"`, /error: this is not an https URL/],
    [`${good}, ${require}, algorithms: [none]`, /error: "none" is no signature/],
    [`${good}, ${require}, algorithms: [RS256, HS256]`, /error: HS256 signs with a shared secret/],
    [`${good}, ${require}, algorithms: [RS265]`, /error: there is no algorithm "RS265"; did you mean "RS256"/],
    [good, /error: this needs groups or require/],
    [`${good}, groups: { map: { "x": reserach } }`, /error: there is no group "reserach"; did you mean "research"/],
    [`${good}, groups: { default: reserach }`, /error: there is no group "reserach"; did you mean "research"/],
    [`${good}, groups: {}`, /warning: no caller gets a group here, so every caller is refused/],
    [`issuer: https://token.actions.githubusercontent.com, audience: a, groups: { default: research }`, /error: every repository of GitHub/],
    ...['ref: refs/heads/main', 'repository_owner: "*"', 'repository: "*/app"', 'repository: "acm*"', 'repository_owner: [acme, "*"]', 'sub: "repo:*"'].map(
      (claim): [string, RegExp] => [`issuer: https://token.actions.githubusercontent.com, audience: a, require: { ${claim} }`, /error: every repository of GitHub/],
    ),
    [`issuer: https://accounts.google.com, audience: a, require: { email: "*@*" }`, /error: every account of Google/],
    [`issuer: https://gitlab.com, audience: a, groups: { claim: namespace_path, map: { "*": research } }`, /error: every project of GitLab/],
    [`${good}, ${require} }\n  - { name: corp, ${good}, ${require}`, /error: the issuer on line 5 has the same name/],
    [`${good}, ${require} }\n  - { name: console, ${good}, ${require}`, /error: "console" is reserved/],
    [`${good}, ${require}`, /error: names that begin with "corp:" belong to callers/, 'keys: [{ name: "corp:a", key: sk-0123456789abcdef }]\n'],
    [`${good}, ${require}, keys: 101`, /error: .*100/],
    [`${good}, ${require}, keys: 3`, /warning: callers make keys in the console, and it lets none log in; set console.oidc.callers: true/],
    [`${ISSUER}, ${require}`, /error: .*audience/],
  ]
  const missing = cases.flatMap(([entry, expected, more]) => {
    const found = wrong(entry, more)
    return found.some(each => expected.test(each)) ? [] : [`${entry}: ${found.join(' | ')}`]
  })
  t.strictSame(missing, [])
})

t.test('a public issuer is accepted if require or groups name the owner', async t => {
  const errors = (entry: string) => problems(t, `${LEAST}${GROUPS}callers:\n  - { name: corp, audience: a, ${entry} }\n`)
    .filter(({ severity }) => severity === 'error')
  for (const claim of [
    'repository_owner_id: "1", ref: "*"', 'repository: "acme/*"', 'repository_owner: [acme, other]', 'sub: "repo:acme/app:*"',
  ]) t.strictSame(errors(`issuer: https://token.actions.githubusercontent.com, require: { ${claim} }`), [], claim)
  t.strictSame(errors('issuer: https://accounts.google.com, require: { email: "*@my-project.iam.gserviceaccount.com" }'), [])
  t.strictSame(errors('issuer: https://gitlab.com, groups: { claim: namespace_path, map: { acme: research, "acme/*": research } }'), [])
})

t.test('callers without keys are enough', async t => {
  const text = `${LEAST}callers: [{ name: corp, ${ISSUER}, audience: a, require: { a: b } }]\n`
  t.strictSame(problems(t, text).filter(({ message }) => /there are no keys/.test(message)), [])
})
