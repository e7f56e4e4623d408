import t from 'tap'
import { load, problems } from './loading.ts'

t.test('aliases and merge keys are replaced by their content', async t => {
  const { config } = load(t, `
upstreams:
  a: &base
    url: https://a.example.com
    headers: &headers { x-one: "1", x-two: "2" }
    usage: as_is
  b:
    <<: *base
    url: https://b.example.com
    headers: { <<: *headers, x-two: two }
  c: { <<: [{ websocket: true, usage: ask }, *base] }
routes:
  - &route { model: &models [x, y], to: a, timeouts: &slow { total: 1h } }
  - { <<: *route, to: b, model: z }
  - { to: c, model: *models, timeouts: *slow, path: /c/* }
keys:
  - { name: &name team, sha256: "${'0'.repeat(64)}", models: *models }
  - { name: "<<", sha256: "${'1'.repeat(64)}" }
`)
  const [a, b, c] = ['a', 'b', 'c'].map(name => config.upstreams.get(name))
  t.equal(b?.url?.host, 'b.example.com', 'an entry of the map takes precedence over a merged entry')
  t.match(b, { usage: 'as_is', headers: { 'x-one': '1', 'x-two': 'two' } })
  t.match(a, { headers: { 'x-one': '1', 'x-two': '2' } }, 'the source of the merge is unchanged')
  t.match(c, { websocket: true, usage: 'ask', url: { host: 'a.example.com' } }, 'the first source takes precedence')
  t.match(config.routes[1], { models: ['z'], timeouts: { total: 3_600_000 } })
  t.match(config.routes[1], { targets: [{ upstream: { name: 'b' } }] })
  t.match(config.routes[2], { models: ['x', 'y'], timeouts: { total: 3_600_000 } })
  t.strictSame(config.keys.map(({ name }) => name), ['team', '<<'], 'a quoted << is an ordinary name')
})

t.test('an error in merged content is reported once, at the line of the source', async t => {
  const text = `upstreams:
  a: &base
    simulator: true
    usage: never
  b: { <<: *base }
  c: *base
routes: [{ to: a, model: a }, { to: b, model: b }, { to: c }]
auth: open
`
  t.match(problems(t, text), [{ line: 4, column: 12, message: /upstreams\.a\.usage must be ask or as_is/ }])
  t.equal(problems(t, text).length, 1)
})

t.test('__proto__, constructor and toString are ordinary names', async t => {
  const { config } = load(t, `
upstreams:
  __proto__: { simulator: true, headers: { __proto__: a, constructor: b } }
  constructor: { simulator: true }
routes: [{ to: __proto__, model: a }, { to: constructor }]
models: { toString: { price: { input: 1 } } }
auth: open
`)
  t.strictSame([...config.upstreams.keys()], ['__proto__', 'constructor'])
  const headers = config.upstreams.get('__proto__')?.headers ?? {}
  t.strictSame(Object.entries(headers), [['__proto__', 'a'], ['constructor', 'b']])
  t.equal(config.models.get('toString')?.price?.input, '1')
})
