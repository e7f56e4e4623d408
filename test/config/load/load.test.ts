import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import type { Problem } from '../../../src/config/problem.ts'
import { LEAST, load, problems, problemsOf } from '../../behaviour/config/loading.ts'

const HASH = `scrypt:N=16384:r=8:p=1:${'A'.repeat(22)}:${'A'.repeat(43)}`

t.test('missing keys have their defaults', async t => {
  const { config } = load(t, LEAST)
  t.match(config, {
    server: {
      listen: { host: '127.0.0.1', port: 8080 },
      reusePort: false,
      tls: null,
      bodyLimit: 64 * 1024 * 1024,
      bodyMemory: 512 * 1024 * 1024,
      maxInFlight: 10_000,
      maxConnections: 20_000,
      trustedProxies: { length: 0 },
      drain: 30 * 60_000,
    },
    console: null,
    docs: null,
    auth: 'keys',
    timeouts: { connect: 10_000, firstByte: 1_800_000, idle: 1_800_000, total: 1_800_000 },
    keys: [],
    limits: null,
    ledger: null,
    billing: { abandoned: 'prompt' },
    log: { level: 'info' },
  })
  t.equal(config.models.size, 0)
  t.match(config.upstreams.get('demo'), {
    name: 'demo', url: null, simulator: true, auth: null, headers: {}, websocket: false,
    versionHeader: 'anthropic-version', usage: 'ask', ca: null,
  })
  t.match(config.routes, [{ index: 0, line: 2, path: null, models: null, strategy: 'ordered', retries: 0 }])
  t.match(config.routes[0]?.targets, [{ model: null, weight: 1 }])
})

t.test('by default no usage is requested from hosts that refuse stream_options', async t => {
  const urls = ['https://api.mistral.ai', 'https://codestral.mistral.ai/x', 'https://notmistral.ai']
  const text = urls.map((url, i) => `  up${i}: { url: "${url}" }\n`).join('')
  const { config } = load(t, `
upstreams:
${text}  told: { url: https://api.mistral.ai, usage: ask }
routes: [{ to: [up0, up1, up2, told] }]
`)
  const usage = ['up0', 'up1', 'up2', 'told'].map(name => config.upstreams.get(name)?.usage)
  t.strictSame(usage, ['as_is', 'as_is', 'ask', 'ask'])
})

t.test('each configuration key is read', async t => {
  const { config, warnings } = load(t, `
server:
  listen: :9090
  body_limit: 1.5kb
  trusted_proxies: [10.0.0.0/8, ::1]
  drain: 90s
console:
  listen: "[::1]:8081"
  users: [{ name: ops, password: "${HASH}", role: viewer }]
docs:
  listen: 8082
auth: open
timeouts: { connect: 1s, first_byte: 2s, idle: 3s, total: 4s }
upstreams:
  openai:
    url: https://api.openai.com/prefix/
    auth: { bearer: secret-token }
    headers: { X-Team: a, anthropic-version: "2023-06-01" }
    websocket: true
    version_header: Vendor-Version
    usage: as_is
    v1: /api/v4/
  other:
    url: HTTP://127.0.0.1:9
    auth: { header: X-Api-Key, value: secret }
routes:
  - path: /v1/messages*
    model: claude-*
    to: openai
  - model: [fast, slow]
    to:
      - { upstream: openai, model: gpt-4.1-mini, weight: 3 }
      - other
    strategy: weighted
    retries: 2
    timeouts: { first_byte: 20s }
  - to: { upstream: other }
models:
  plain: {}
  priced:
    price:
      input: 0.40
      cached_input: .1
      cache_write: 1.250
      output: 1.60
      reasoning: 2.
      input_audio: 3
      output_audio: 4
      input_image: 5
      output_image: 6
      per_request: 0.01
      per_second: 0.0001
      per_character: 2.5e-05
      per_image: 1.5e+2
      tiers:
        - { above: 400000, input: 4 }
        - { above: 200000, input: 2, cache_write: { 5m: 1, 1h: 2 } }
      service_tiers: { flex: { input: 0.20, tiers: [{ above: 1, input: 9 }] } }
keys:
  - name: plain
    key: a-key-that-is-long-enough
  - name: hashed
    sha256: 9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08
    models: [fast, "claude-*"]
    limits:
      requests_per_minute: 60
      tokens_per_minute: 100000
      concurrent: 10
      budget: { usd: 50.00, per: month }
      models: { "gpt-*": { concurrent: 1, budget: { usd: .5, per: day } } }
  - { name: one, key: another-key-that-is-long, models: fast }
limits: { requests_per_minute: 5 }
ledger: { file: data/gateway.db, keep: 400d }
billing: { abandoned: none }
log: { level: warn }
`)
  t.strictSame(warnings, [])
  t.match(config.server, {
    listen: { host: '', port: 9090 }, bodyLimit: 1536, trustedProxies: ['10.0.0.0/8', '::1'], drain: 90_000,
  })
  t.match(config.console, {
    listen: { host: '::1', port: 8081 }, users: [{ name: 'ops', password: HASH, role: 'viewer' }],
  })
  t.match(config.docs, { listen: { host: '', port: 8082 } })
  t.equal(config.auth, 'open')
  t.strictSame(config.timeouts, { connect: 1000, firstByte: 2000, idle: 3000, total: 4000 })

  const openai = config.upstreams.get('openai')
  t.equal(openai?.url?.href, 'https://api.openai.com/prefix/')
  t.match(openai, {
    auth: { headers: ['authorization'], value: 'Bearer secret-token' },
    headers: { 'x-team': 'a', 'anthropic-version': '2023-06-01' },
    websocket: true, versionHeader: 'vendor-version', usage: 'as_is', v1: '/api/v4',
  })
  t.match(config.upstreams.get('other'), { auth: { headers: ['x-api-key'], value: 'secret' } })

  const [first, second, third] = config.routes
  t.match(first, { index: 0, line: 27, path: '/v1/messages*', models: ['claude-*'] })
  t.match(second, { index: 1, path: null, models: ['fast', 'slow'], strategy: 'weighted', retries: 2 })
  t.strictSame(second?.timeouts, { connect: 1000, firstByte: 20_000, idle: 3000, total: 4000 })
  t.strictSame(second?.targets.map(({ upstream, model, weight }) => [upstream.name, model, weight]),
    [['openai', 'gpt-4.1-mini', 3], ['other', null, 1]])
  t.equal(second?.targets[0]?.upstream, openai, 'a route refers to the same object as the map of upstreams')
  t.match(third, { models: null, targets: [{ model: null }] })

  t.equal(config.models.get('plain')?.price, null)
  t.strictSame(config.models.get('priced')?.price, {
    input: '0.40', cachedInput: '0.1', cacheWrite5m: '1.250', cacheWrite1h: '1.250',
    output: '1.60', reasoning: '2',
    inputAudio: '3', outputAudio: '4', inputImage: '5', outputImage: '6',
    perRequest: '0.01', perSecond: '0.0001', perCharacter: '0.000025', perImage: '150',
    tiers: [
      { above: 200_000, price: { input: '2', cacheWrite5m: '1', cacheWrite1h: '2' } },
      { above: 400_000, price: { input: '4' } },
    ],
  })
  t.match(config.models.get('priced')?.serviceTiers.get('flex'), {
    input: '0.20', output: '1.60', tiers: [{ above: 1, price: { input: '9' } }],
  })

  const [plain, hashed, one] = config.keys
  t.same(plain?.digest, createHash('sha256').update('a-key-that-is-long-enough').digest())
  t.match(plain, { models: null, limits: null })
  t.same(hashed?.digest, createHash('sha256').update('test').digest())
  t.strictSame(hashed?.models, ['fast', 'claude-*'])
  t.match(hashed?.limits, {
    requestsPerMinute: 60, tokensPerMinute: 100_000, concurrent: 10, budget: { usd: '50.00', per: 'month' },
  })
  t.strictSame(hashed?.limits?.models.get('gpt-*'), {
    requestsPerMinute: null, tokensPerMinute: null, concurrent: 1, budget: { usd: '0.5', per: 'day' },
  })
  t.strictSame(one?.models, ['fast'])
  t.match(config.limits, { requestsPerMinute: 5, tokensPerMinute: null })
  t.match(config.ledger, { file: join(t.testdirName, 'data/gateway.db'), keep: 400 * 86_400_000 })
  t.match(config.billing, { abandoned: 'none' })
  t.match(config.log, { level: 'warn' })
})

t.test('paths are relative to the configuration file, and the path of that file is made absolute', async t => {
  const directory = t.testdir({ sub: {} })
  writeFileSync(join(directory, 'sub', 'gateway.yaml'), `${LEAST}ledger: { file: ../x.db }\n`)
  const home = process.cwd()
  process.chdir(directory)
  t.teardown(() => process.chdir(home))
  const { config } = loadConfig('sub/gateway.yaml', {})
  t.equal(config.file, join(process.cwd(), 'sub', 'gateway.yaml'))
  t.equal(config.ledger?.file, join(process.cwd(), 'x.db'))
})

t.test('the configuration and all its parts are frozen', async t => {
  const { config } = load(t, `${LEAST}
limits: { budget: { usd: 5, per: day } }
models: { m: { price: { input: 1 } } }
`)
  const frozen = (value: unknown): boolean => {
    if (typeof value !== 'object' || value === null) return true
    if (value instanceof URL || Buffer.isBuffer(value)) return true
    const inner = value instanceof Map ? [...value.values()] : Object.values(value)
    return Object.isFrozen(value) && inner.every(frozen)
  }
  t.ok(frozen(config))
})

t.test('a duplicate among ten thousand keys is reported', async t => {
  const item = (at: number): string => `  - name: team-${at}\n    key: key-of-team-number-${at}\n`
  const lines = Array.from({ length: 10_000 }, (_, at) => item(at))
  const { config, warnings } = load(t, `${LEAST}keys:\n${lines.join('')}`)
  t.equal(config.keys.length, 10_000)
  t.equal(new Set(config.keys.map(({ digest }) => digest.toString('hex'))).size, 10_000)
  t.strictSame(warnings, [])
  lines[9_999] = lines[123] ?? ''
  t.match(problems(t, `${LEAST}keys:\n${lines.join('')}`), [
    { line: 20_002, message: /same name/ }, { line: 20_003, message: /same value/ },
  ])
})

t.test('an unreadable file is reported with the reason', async t => {
  const directory = t.testdir({ 'gateway.yaml': LEAST })
  const told = (...names: string[]): readonly Problem[] =>
    problemsOf(() => loadConfig(join(directory, ...names), {}))
  t.match(told('no.yaml'), [{ line: null, column: null, excerpt: null, message: /no such file/ }])
  t.match(told('gateway.yaml', 'x'), [{ message: /no such file/ }])
  t.match(told(), [{ message: /this is a directory/ }])
})

t.test('the ledger cannot have the name of another file that the gateway writes', async t => {
  for (const name of ['keys.db', 'capsule-keys.db', 'console.db', 'bodies.db', 'alerts.json']) {
    const told = problems(t, `${LEAST}auth: open\nledger: { file: data/${name} }\n`)
    const message = /keeps something else under this name/
    t.match(told, { length: 1, 0: { severity: 'error', line: 4, column: 17, message } }, name)
  }
  t.strictSame(problems(t, `${LEAST}auth: open\nledger: { file: data/gateway.db }\n`), [])
})

t.test('a directory or pipe in place of the ledger or of another file in its directory is reported', {
  skip: process.platform === 'win32' && 'no pipes',
}, async t => {
  const directory = t.testdir({ 'gateway.db': {}, 'beside': { 'console.db': {} } })
  execFileSync('mkfifo', [join(directory, 'pipe'), join(directory, 'keys.db')])
  const told = (ledger: string): readonly Problem[] => {
    const file = join(directory, 'gateway.yaml')
    writeFileSync(file, `${LEAST}auth: open\nledger: { file: ${ledger} }\n`)
    return problemsOf(() => loadConfig(file, {}))
  }
  const [own, keys] = told('gateway.db')
  t.match(own, { severity: 'error', line: 4, column: 17, message: /this is a directory; it takes the path of/ })
  t.match(keys, { severity: 'error', line: 4, message: /keys\.db is a pipe, .* move it, or the ledger/ })
  t.match(told('pipe'), [{ message: /this is a pipe/ }, { message: /keys\.db is a pipe/ }])
  t.match(told('beside/gateway.db'), [{ message: /console\.db is a directory/ }])
})

t.test('a user name or a password in the URL of an upstream is refused', async t => {
  for (const user of ['SECRET', 'SECRET:', ':SECRET', 'a:SECRET']) {
    const upstream = `{ url: "https://${user}@example.com" }`
    const told = problems(t, `upstreams: { a: ${upstream} }\nroutes: []\nauth: open\n`)
    t.match(told, [{ severity: 'error', message: /a URL must not contain credentials/ }], user)
    t.notMatch(JSON.stringify(told), 'SECRET')
  }
})

t.test('a byte order mark and CRLF line ends are accepted', async t => {
  const text = `${LEAST}auth: open\nlog: { level: wrn }\n`
  const plain = problems(t, text)
  t.match(plain, [{ line: 4, column: 15, message: /did you mean "warn"/ }])
  t.strictSame(problems(t, `\ufeff${text}`), plain)
  t.strictSame(problems(t, text.replaceAll('\n', '\r\n')), plain)
})

t.test('a file of more than 64 MB is refused and not read to its end', async t => {
  const file = join(t.testdir({ 'gateway.db': '' }), 'gateway.db')
  truncateSync(file, 2 ** 30)
  for (const name of [file, '/dev/zero']) {
    t.match(problemsOf(() => loadConfig(name, {})), [{ line: null, message: /larger than 64 MB/ }], name)
  }
})

t.test('owner, note and expiry of a key are read', async t => {
  const of = (rest: string) => `${LEAST}keys:\n  - { name: a, key: sk-0123456789abcdef, ${rest} }\n`
  const { config, warnings } = load(t, of('owner: research, note: batch jobs, expires: 2127-01-01'))
  t.match(config.keys, [{ owner: 'research', note: 'batch jobs', expiresAt: Date.UTC(2127, 0, 1), prefix: 'sk-01234' }])
  t.strictSame(warnings, [])
  t.match(load(t, of('expires: "2127-01-01T12:30:00+02:00"')).config.keys, [{ expiresAt: Date.UTC(2127, 0, 1, 10, 30) }])
  t.match(problems(t, of('expires: 2020-01-01')), [{ line: 4, severity: 'warning', message: /expired/ }])
  for (const wrong of ['30d', 'tomorrow', '2127-02-31', '2127-13-01']) {
    t.match(problems(t, of(`expires: ${wrong}`)), [{ line: 4, column: Number, severity: 'error' }], wrong)
  }
  t.match(problems(t, of('expiry: 2127-01-01')), [{ message: /expires/ }])
})
