import { createHash } from 'node:crypto'
import t from 'tap'
import { LEAST, load, problems } from './loading.ts'

t.test('variables can hold text, numbers, booleans and durations', async t => {
  const text = `
server: { listen: "\${HOST:-127.0.0.1}:\${PORT}", drain: "\${DRAIN}", body_limit: "\${LIMIT}" }
console: { listen: "\${PORT2}" }
upstreams:
  demo: { simulator: "\${YES}" }
  live: { url: "https://\${HOST:-api.example.com}/v\${TWO}", auth: { bearer: "\${TOKEN}" } }
routes:
  - { to: "\${WHERE:-demo}", retries: "\${TWO}" }
models: { m: { price: { input: "\${PRICE}", cache_write: "\${PRICE}" } } }
keys:
  - name: literal
    key: $\${NOT_A_REFERENCE}-at-all
  - name: team
    key: \${KEY}
    limits: { concurrent: "\${TWO}" }
log:
  level: \${LEVEL:-warn}
`
  const env = {
    PORT: '8443', PORT2: '9000', DRAIN: '5s', LIMIT: '1kb', YES: 'true', TWO: '2', TOKEN: 'abc',
    PRICE: '0.50',
    KEY: 'a-key-with:{yaml}#in-it', WHERE: '',
  }
  const { config } = load(t, text, env)
  t.match(config.server, { listen: { host: '127.0.0.1', port: 8443 }, drain: 5000, bodyLimit: 1024 })
  t.match(config.console, { listen: { host: '', port: 9000 } })
  t.equal(config.upstreams.get('demo')?.simulator, true)
  t.equal(config.upstreams.get('live')?.url?.href, 'https://api.example.com/v2')
  t.match(config.upstreams.get('live')?.auth, { value: 'Bearer abc' })
  t.match(config.routes[0], { retries: 2, targets: [{ upstream: { name: 'demo' } }] })
  t.match(config.models.get('m')?.price, { input: '0.50', cacheWrite5m: '0.50' })
  t.same(config.keys[0]?.digest, createHash('sha256').update('${NOT_A_REFERENCE}-at-all').digest())
  t.same(config.keys[1]?.digest, createHash('sha256').update('a-key-with:{yaml}#in-it').digest())
  t.equal(config.keys[1]?.limits?.concurrent, 2)
  t.equal(config.log.level, 'warn')
})

t.test('a size from a variable can be a number of bytes', async t => {
  const text = 'ledger: { file: x.db }\nserver: { body_limit: "${LIMIT}", body_memory: "${LIMIT}" }\n'
  const bodies = 'log: { bodies: [{ key: a, keep: 1d, limit: "${LIMIT}" }] }\n'
  const { config } = load(t, `${LEAST}${text}${bodies}`, { LIMIT: '2048' })
  t.match(config.server, { bodyLimit: 2048, bodyMemory: 2048 })
  t.match(config.log.bodies, [{ limit: 2048 }])
  const told = (LIMIT: string) => problems(t, `${LEAST}${text}`, { LIMIT })[0]?.message
  t.match(told('0'), /server.body_limit must be >= 1, which/)
  for (const text of ['1.5', 'much']) {
    t.match(told(text), /body_limit must be a size such as .*, which the value from the environment is not/, text)
  }
})

t.test('the value of a variable cannot become YAML structure', async t => {
  const { config } = load(t, LEAST.replace('demo }]', '"${UP}" }]'), { UP: 'demo' })
  t.equal(config.routes[0]?.targets[0]?.upstream.name, 'demo')
  const text = 'upstreams: { demo: { simulator: true } }\nroutes:\n  - to: ${UP}\n'
  for (const UP of ['demo\n    retries: 3', '[demo, demo]', '"demo"', '*demo', 'demo # a comment']) {
    t.match(problems(t, text, { UP }), [{ line: 3, message: /no upstream has this name/ }], UP)
  }
})

t.test('quoted text in the file is not read as a number', async t => {
  const told = problems(t, `${LEAST}limits: { concurrent: "5" }\n`)
  t.match(told, [{ severity: 'error', message: /remove the quotes/ }])
})

t.test('a key is the example key only if it is the default value of a variable', async t => {
  const text = `${LEAST}keys:
  - { name: a, sha256: "${'0'.repeat(64)}" }
  - { name: b, key: "\${KEY:-public-demo-key-0}" }
`
  t.equal(load(t, text).exampleKey, 'public-demo-key-0')
  t.equal(load(t, text, { KEY: 'secret-secret-secret' }).exampleKey, null)
  t.equal(load(t, `${LEAST}keys: [{ name: a, key: literal-secret-key }]\n`).exampleKey, null)
  t.equal(load(t, LEAST).exampleKey, null)
})
