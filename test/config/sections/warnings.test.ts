import t from 'tap'
import { LEAST, problems } from '../../behaviour/config/loading.ts'

const TWO = 'upstreams: { demo: { simulator: true }, other: { simulator: true } }\n'
const OWN = 'upstreams: { own: { url: "https://a.example", auth: { client: true } }, demo: { simulator: true } }\n'
const KEY = 'key: sk-0123456789abcdef'

const CASES: readonly (readonly [what: string, text: string, expected: readonly object[]])[] = [
  ['auth: open', `${LEAST}auth: open\n`, []],
  ['no keys', `${LEAST}auth: keys\n`, [{ line: null, message: /^there are no keys, so every request is refused/ }]],
  ['no routes', 'upstreams: { demo: { simulator: true } }\nroutes: []\nauth: open\n', [{ line: null, message: /^there are no routes/ }, { line: 1, message: 'no route names this upstream' }]],
  ['an upstream without a route', `${TWO}routes: [{ to: demo }]\nauth: open\n`, [{ line: 1, column: 41, message: 'no route names this upstream' }]],
  ['an upstream that only a failover condition names', `${TWO}routes: [{ to: demo, on: { context_length: other } }]\nauth: open\n`, []],
  ['a route after a route that takes every request', `${TWO}auth: open\nroutes:\n  - to: demo\n  - { model: [m], to: other }\n`, [{ line: 5, message: 'no request reaches this route: the one on line 4 takes all that it matches' }]],
  ['a route after a pattern that matches its models', `${TWO}auth: open\nroutes:\n  - { model: ["gpt-*"], to: demo }\n  - { model: [gpt-4o, "gpt-5*"], to: other }\n`, [{ line: 5, message: /line 4/ }]],
  ['a route with models beyond the earlier pattern', `${TWO}auth: open\nroutes:\n  - { model: ["gpt-*"], to: demo }\n  - { model: [gpt-4o, o3], to: other }\n`, []],
  ['a route for requests without a model', `${TWO}auth: open\nroutes:\n  - { model: ["*"], to: demo }\n  - to: other\n`, []],
  ['two routes with different paths', `${TWO}auth: open\nroutes:\n  - { path: /v1/a, to: demo }\n  - { path: /v1/b, to: other }\n`, []],
  ['a route whose path matches the pattern of an earlier route', `${TWO}auth: open\nroutes:\n  - { path: /v1/*, to: demo }\n  - { path: /v1/b, to: other }\n`, [{ line: 5, message: /line 4/ }]],
  ['resume without a target that continues', `${LEAST.replace('to: demo', 'to: demo, resume: continue')}auth: open\n`, [{ line: 2, message: /no target of this route has prefill: true/ }]],
  ['resume with a target that continues', `${LEAST.replace('to: demo', 'to: { upstream: demo, prefill: true }, resume: continue')}auth: open\n`, []],
  ['hedge with one target', `${LEAST.replace('to: demo', 'to: demo, hedge: { after: 1s }')}auth: open\n`, [{ line: 2, message: /^hedge needs a second target/ }]],
  ['hedge without retries', `${TWO}auth: open\nroutes: [{ to: [demo, other], retries: 0, hedge: { after: 1s } }]\n`, [{ message: /^hedge needs a second target/ }]],
  ['hedge at the timeout of the first byte', `${TWO}auth: open\nroutes: [{ to: [demo, other], hedge: { after: 2s }, timeouts: { first_byte: 2s } }]\n`, [{ message: /^hedge.after is not below timeouts.first_byte/ }]],
  ['hedge before the first byte', `${TWO}auth: open\nroutes: [{ to: [demo, other], hedge: { after: 1s }, timeouts: { first_byte: 2s } }]\n`, []],
  ['two providers that the client pays', `${OWN.replace('own:', 'second: { url: "https://second.example", auth: { client: true } }, own:')}auth: open\nroutes: [{ model: m, to: [own, second] }, { to: demo }]\n`, [{ severity: 'error', message: /would reach the other; give each a route$/ }]],
  ['targets that the client pays, and others', `${OWN}auth: open\nroutes: [{ to: [own, demo] }]\n`, [{ message: /^requests that fail at own, which the client pays, go on to demo, which you pay/ }]],
  ['a route for each payer', `${OWN}auth: open\nroutes: [{ model: m, to: own }, { to: demo }]\n`, []],
  ["health checks with a client's credential", `${OWN.replace('client: true }', 'client: true }, health: { path: /x }')}auth: open\nroutes: [{ model: m, to: own }, { to: demo }]\n`, [{ message: /^health checks of this upstream carry no credential/ }]],
  ['a key for a model without a route', `${LEAST.replace('to: demo', 'model: ["gpt-*"], to: demo')}keys: [{ name: a, ${KEY}, models: [gpt-4o, o3, "g*", "*"] }]\n`, [{ line: 3, message: 'no route serves a model of this name' }]],
  ['a key for any model of a route that takes all', `${LEAST}keys: [{ name: a, ${KEY}, models: [o3] }]\n`, []],
  [
    'a cluster without a store', `${LEAST}auth: open\ncluster: { postgres: "postgres://db/x" }\nledger: { file: l.db }\n`,
    [{ severity: 'warning', line: 4, message: 'without cluster.valkey each gateway counts limits and budgets for itself' }],
  ],
]

for (const [what, text, expected] of CASES) {
  t.test(`a configuration with ${what} ${expected.length === 0 ? 'has no warning' : 'has a warning'}`, async t => {
    const found = problems(t, text)
    t.equal(found.length, expected.length, JSON.stringify(found.map(({ message }) => message)))
    t.match(found, expected.map(each => ({ severity: 'warning', ...each })))
  })
}

for (const [url, v1, isOdd] of [
  ['https://x.openai.azure.com', '', true], ['https://x.openai.azure.com/openai', '', false], ['https://x.openai.azure.com', ', v1: /openai/v1', false],
  ['https://x.openai.azure.com/openai', ', v1: /v2', true], ['https://x.openai.azure.com.example', '', false],
] as const) {
  t.test(`an Azure upstream with ${url}${v1} has ${isOdd ? 'a' : 'no'} warning`, async t => {
    const found = problems(t, `${LEAST.replace('simulator: true', `url: "${url}"${v1}`)}auth: open\n`)
    t.equal(found.some(({ message }) => message.includes('Azure has it under /openai/v1')), isOdd)
  })
}
