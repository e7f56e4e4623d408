import { join } from 'node:path'
import t from 'tap'
import { loadConfigInThread } from '../../../src/config/load/load-in-thread.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError } from '../../../src/config/problem.ts'

const FULL = `
upstreams:
  one: { url: "https://one.example/prefix", v1: /openai/v1, auth: { bearer: "\${KEY_OF_ONE}" }, headers: { X-Team: a } }
  two: { url: "http://[::1]:8080" }
  demo: { simulator: true }
routes:
  - { path: /v1/*, model: [gpt-*, o*], to: [{ upstream: one, model: gpt-4o, weight: 2 }, two] }
  - model: claude-*
    to: one
    on: { context_length: two, content_filter: { upstream: demo, model: m } }
  - { to: demo }
models: { m: { price: { input: 0.4, output: 1.6, tiers: [{ above: 200000, input: 0.8 }] } } }
keys:
  - { name: plain, key: sk-0123456789abcdef, limits: { budget: { usd: 5, per: month } } }
  - { name: digest, sha256: "${'ab'.repeat(32)}", models: [gpt-*] }
limits: { models: { gpt-*: { requests_per_minute: 5 } } }
ledger: { file: gateway.db }
`

t.beforeEach(() => {
  process.env['KEY_OF_ONE'] = 'sk-of-one'
})

t.test('loadConfigInThread and loadConfig return equal configurations', async t => {
  const file = join(t.testdir({ 'gateway.yaml': FULL }), 'gateway.yaml')
  const apart = await loadConfigInThread(file)
  t.strictSame(apart, loadConfig(file, process.env))
  const { upstreams, routes, keys } = apart.config
  t.equal(routes[0]?.targets[1]?.upstream, upstreams.get('two'), 'a route refers to the same object as the map of upstreams')
  t.equal(routes[1]?.on.contextLength?.upstream, upstreams.get('two'))
  t.ok(upstreams.get('one')?.url instanceof URL)
  t.ok(Buffer.isBuffer(keys[0]?.digest))
  t.ok([apart.config, keys, routes[1]?.on, upstreams.get('one')].every(part => Object.isFrozen(part)))
})

t.test('loadConfigInThread does not block the event loop', async t => {
  const file = join(t.testdir({ 'gateway.yaml': FULL }), 'gateway.yaml')
  let isRead = false
  const reading = loadConfigInThread(file).then(() => {
    isRead = true
  })
  await new Promise(resolve => setImmediate(resolve))
  t.notOk(isRead)
  await reading
})

t.test('loadConfigInThread and loadConfig report the same errors and warnings', async t => {
  const file = join(t.testdir({ 'gateway.yaml': `${FULL}server: { listn: 1, tls: { cert: a, key: b } }` }),
    'gateway.yaml')
  const expected = t.throws(() => loadConfig(file, process.env), ConfigError) as ConfigError
  const found = await t.rejects(loadConfigInThread(file)) as ConfigError
  t.type(found, ConfigError)
  t.equal(found.message, expected.message)
  t.strictSame(found.problems, expected.problems)
  t.strictSame(found.files, expected.files)
})

t.test('a missing file is reported', async t => {
  await t.rejects(loadConfigInThread(join(t.testdir({}), 'gateway.yaml')), { message: /no such file/ })
})
