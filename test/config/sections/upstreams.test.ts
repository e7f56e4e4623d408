import t from 'tap'
import type { Test } from 'tap'
import { LEAST, load, problems } from '../../behaviour/config/loading.ts'

const withUpstream = (upstream: string) => `upstreams: { demo: ${upstream} }\nroutes: [{ to: demo }]\nauth: open\n`
const upstreamOf = (t: Test, upstream: string) => load(t, withUpstream(upstream)).config.upstreams.get('demo')

t.test('omitted keys of an upstream have their defaults', async t => {
  const upstream = upstreamOf(t, '{ url: "https://api.example.com" }')
  t.match(upstream, {
    name: 'demo', v1: null, simulator: false, provider: null, auth: null, websocket: false, versionHeader: 'anthropic-version', usage: 'ask', speaks: null, ca: null,
    connectionAge: 300_000, limits: null, health: null,
  })
  t.equal(upstream?.url?.href, 'https://api.example.com/')
  t.strictSame(Object.keys(upstream?.headers ?? {}), [])
  t.equal(load(t, LEAST).config.upstreams.get('demo')?.url, null)
})

t.test('an upstream and a key with the same name have separate limits', async t => {
  t.match(upstreamOf(t, '{ simulator: true, limits: { concurrent: 5 } }')?.limits, { name: 'upstream\tdemo', isGroup: true, limits: { concurrent: 5 } })
})

for (const [host, usage, expected] of [
  ['api.mistral.ai', '', 'as_is'], ['mistral.ai', '', 'as_is'], ['api.mistral.ai.example.com', '', 'ask'], ['notmistral.ai', '', 'ask'], ['api.mistral.ai', ', usage: ask', 'ask'],
] as const) {
  t.test(`the usage option for ${host}${usage} is ${expected}`, async t => t.equal(upstreamOf(t, `{ url: "https://${host}"${usage} }`)?.usage, expected))
}

t.test('names of headers are lowercased', async t => {
  const upstream = upstreamOf(t, '{ url: "https://a.example", headers: { X-Team: a, __proto__: b }, version_header: X-Version }')
  t.strictSame(Object.entries(upstream?.headers ?? {}), [['x-team', 'a'], ['__proto__', 'b']])
  t.equal(upstream?.versionHeader, 'x-version')
})

t.test('an upstream at Bedrock has the provider and the protocol of Bedrock', async t => {
  t.match(upstreamOf(t, '{ bedrock: { region: eu-west-1 } }'), { provider: { kind: 'bedrock' }, speaks: ['messages'] })
})

t.test('a health check has a path and an interval, by default 10 s', async t => {
  t.strictSame(upstreamOf(t, '{ url: "https://a.example", health: { path: "/health?deep=1" } }')?.health, { path: '/health?deep=1', every: 10_000 })
  t.strictSame(upstreamOf(t, '{ url: "https://a.example", health: { path: /h, every: 1s } }')?.health, { path: '/h', every: 1_000 })
})

for (const [v1, expected] of [['/api/v4', '/api/v4'], ['/api/v4//', '/api/v4'], ['/', '']] as const) {
  t.test(`with v1: ${v1} the path prefix /v1 becomes "${expected}"`, async t => t.equal(upstreamOf(t, `{ url: "https://a.example", v1: ${v1} }`)?.v1, expected))
}

const PROBLEMS: readonly (readonly [what: string, upstream: string, expected: object])[] = [
  ['no location', '{}', { severity: 'error', message: 'an upstream needs a url, or simulator: true' }],
  ['a url and a simulator', '{ url: "https://a.example", simulator: true }', { severity: 'error', message: /either at a url or a simulator/ }],
  ['two clouds', '{ azure: { endpoint: "https://a.example" }, bedrock: { region: eu-west-1 } }', { severity: 'error', message: /remove all but one of azure and bedrock/ }],
  ['a host and port', '{ url: "api.example.com:443" }', { severity: 'error', message: /not an http or https URL/ }],
  ['no host', '{ url: "https:///v1" }', { severity: 'error', message: /not an http or https URL/ }],
  ['another protocol', '{ url: "ftp://a.example" }', { severity: 'error', message: /not an http or https URL/ }],
  ['a user in the url', '{ url: "https://u@a.example" }', { severity: 'error', message: /must not contain credentials; put them under auth/ }],
  ['a query', '{ url: "https://a.example/?a=b" }', { severity: 'error', message: /must end with its path/ }],
  ['an empty query', '{ url: "https://a.example/?" }', { severity: 'error', message: /must end with its path/ }],
  ['a fragment', '{ url: "https://a.example/#a" }', { severity: 'error', message: /must end with its path/ }],
  ['the version of the client', '{ url: "https://a.example/v1" }', { severity: 'warning', message: /already begins with \/v1;/ }],
  ['an endpoint', '{ url: "https://a.example/x/v1/chat/completions/" }', { severity: 'warning', message: /already begins with \/v1;/ }],
  ['a beta version', '{ url: "https://a.example/v1beta" }', { severity: 'warning', message: /already begins with \/v1beta;/ }],
  ['another version', '{ url: "https://a.example/api/paas/v4/" }', { severity: 'warning', message: /use v1: \/api\/paas\/v4$/ }],
  ['v1 without a url', '{ simulator: true, v1: /api }', { severity: 'error', message: 'this is for an upstream at a url; remove it' }],
  ['v1 that is no path', '{ url: "https://a.example", v1: "api?x" }', { severity: 'error', message: /^a path starts with \// }],
  ['Converse elsewhere', '{ url: "https://a.example", speaks: [converse] }', { severity: 'error', message: 'converse is for an upstream at bedrock' }],
  ['a header that auth sets', '{ url: "https://a.example", auth: { bearer: sk-1 }, headers: { Authorization: x } }', { severity: 'error', message: 'auth sets this header; remove one' }],
  ['a header twice', '{ url: "https://a.example", headers: { x-a: "1", X-A: "2" } }', { severity: 'error', message: /stands here twice/ }],
  ['a health check that is no path', '{ url: "https://a.example", health: { path: "health" } }', { severity: 'error', message: /^a path starts with \/ and has no spaces/ }],
]

for (const [what, upstream, expected] of PROBLEMS) {
  t.test(`an upstream with ${what} is reported`, async t => t.match(problems(t, withUpstream(upstream)), [{ line: 1, ...expected }]))
}

for (const url of ['https://a.example/v1x', 'https://a.example/openai', 'https://a.example/v10/x']) {
  t.test(`the path of ${url} gives no warning`, async t => t.strictSame(problems(t, withUpstream(`{ url: "${url}" }`)), []))
}

t.test('a URL that ends in /v1 gives no warning if v1 is set', async t => {
  t.strictSame(problems(t, withUpstream('{ url: "https://a.example/v1", v1: /v1 }')), [])
})
