import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Alert, Live } from '../../src/console/api/panel.ts'
import { PASSWORD, SECOND_KEY, YAML, chat, startConsole } from '../behaviour/console/console.ts'
import type { TestConsole } from '../behaviour/console/console.ts'
import { certificateFiles, inDays, selfSigned } from '../support/certificate.ts'
import type { Certificate } from '../support/certificate.ts'
import { KEY } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'

const ISO_TIME = /^\d{4}-\d\d-\d\dT/
const OPS = { name: 'ops', password: PASSWORD }

async function alertsOf(gateway: TestConsole, who: object = OPS): Promise<Alert[]> {
  const browser = await gateway.login(who)
  return ((await browser.ask('/live')).json as Live).concerns
}

t.test('a healthy gateway has no alerts', async t => {
  const gateway = await startConsole(t)
  await chat(gateway)
  const browser = await gateway.login(OPS)
  t.match((await browser.ask('/live')).json, {
    status: 'ok', running: 0, running_streams: 0, exchanges: { length: 0 }, concerns: { length: 0 },
  })
})

t.test('a rejected credential and an open circuit each cause an alert', async t => {
  let status = 401
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(status).end())
  const gateway = await startConsole(
    t, YAML.replace('sim: { simulator: true }', `sim: { url: "${upstream.url}" }`),
  )
  await chat(gateway)
  t.match(await alertsOf(gateway), [{
    kind: 'upstream_key_rejected', severity: 'error', subject: 'sim', message: /401.*upstreams\.sim\.auth/,
  }])
  const [rejected] = await alertsOf(gateway)
  gateway.clock.advance(1_000)
  await chat(gateway)
  const [again] = await alertsOf(gateway)
  t.not(again?.since, rejected?.since)
  t.equal(again?.id, rejected?.id, 'a second rejection of the credential does not make a second alert')
  status = 500
  for (let i = 0; i < 3; i++) await chat(gateway)
  const kinds = (await alertsOf(gateway)).map(({ kind }) => kind)
  t.same(kinds.toSorted(), ['circuit_open', 'upstream_key_rejected'])
  const open = (await alertsOf(gateway)).find(({ kind }) => kind === 'circuit_open')
  t.match(open, { message: /^Circuit open: demo on sim \(\d consecutive failures\)$/, subject: 'sim', since: ISO_TIME })
  const browser = await gateway.login(OPS)
  t.match((await browser.ask('/upstreams')).json, {
    upstreams: [{ name: 'sim', health: 'down', url: `${upstream.url}/`, candidates: [
      { model: 'demo', circuit: 'open', in_flight: 0 },
    ] }],
  })
  t.match((await browser.ask('/routes')).json, {
    routes: [{ index: 0, line: /\d/, targets: [{ upstream: 'sim', circuit: 'unknown' }] }, {}],
  })
  gateway.clock.advance(16 * 60_000)
  t.notMatch(
    (await alertsOf(gateway)).map(({ kind }) => kind), ['upstream_key_rejected'],
    'the alert ends after 15 minutes',
  )
})

const DOWN = 'down: { url: "http://127.0.0.1:9" }, other: { url: "http://127.0.0.1:9" }, sim: { simulator: true }'

for (const [what, routes, severities] of [
  ['the only target', '{ to: down, retries: 0 }', ['error']],
  ['all targets', '{ to: [{ upstream: down, model: x }, other], retries: 1 }', ['error', 'error']],
  ['one of two targets', '{ to: [down, sim], retries: 1 }', ['warning']],
  ['one of two targets, with a later route that gets no requests', '{ to: [down, sim], retries: 1 }, { model: "d*", to: down }', ['warning']],
] as const) {
  t.test(`the severity of an alert for an open circuit depends on the targets: ${what}`, async t => {
    const gateway = await startConsole(t, YAML.replace('sim: { simulator: true }', DOWN).replace(/^routes:.*$/m, `routes: [${routes}]`))
    for (let i = 0; i < 3; i++) await chat(gateway)
    const alerts = (await alertsOf(gateway)).filter(({ kind }) => kind === 'circuit_open')
    t.strictSame(alerts.map(({ severity }) => severity), severities)
    t.ok(alerts.every(({ severity, line }) => (severity === 'error') === (line !== null)), 'an error has the line of its route; a warning has no line')
  })
}

t.test('an upstream that fails its health checks causes an alert before its first request', async t => {
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(500).end())
  const gateway = await startConsole(t, YAML
    .replace('upstreams: {', `$& gone: { url: "${upstream.url}", health: { path: /, every: 10ms } },`)
    .replace('routes: [', 'routes: [{ model: lost, to: { upstream: gone, model: x } },'))
  await gateway.waitForLog(line => line['msg'] === 'the upstream is unhealthy')
  t.match(await alertsOf(gateway), [{ kind: 'circuit_open', severity: 'error', subject: 'gone', message: 'Circuit open: gone (health checks fail)', since: ISO_TIME }])
  const browser = await gateway.login(OPS)
  const { upstreams } = (await browser.ask('/upstreams')).json as { upstreams: { name: string }[] }
  t.match(upstreams.find(({ name }) => name === 'gone'), {
    health: 'down', candidates: [{ model: null, circuit: 'open', opens_in_ms: null }],
  })
  t.match((await browser.ask('/routes')).json, {
    routes: [{ targets: [{ upstream: 'gone', circuit: 'open' }] }],
  })
})

t.test('a rejected reload and a needed restart each cause an alert', async t => {
  const gateway = await startConsole(t)
  t.match(await gateway.change(YAML.replace('routes:', 'rautes:')), { applied: false })
  t.match(await alertsOf(gateway), [
    { kind: 'reload_failed', message: /^Last reload rejected: .*gateway\.yaml:\d+:\d+: .*did you mean "routes"/ },
  ])
  const browser = await gateway.login(OPS)
  const { json } = await browser.ask('/configuration')
  t.match(json, { failure: { problems: [{ severity: 'error', place: /gateway\.yaml:\d+:\d+/ }] } })
  const { text, failure } = json as { text: string, failure: { text: string, problems: { line: number }[] } }
  t.match(text, 'routes:', 'the active configuration is shown, not the file')
  t.notMatch(text, 'rautes')
  const line = failure.problems[0]?.line ?? 0
  t.match(failure.text.split('\n')[line - 1], 'rautes', 'the response also contains the rejected file and the line of its error')
  t.match(await alertsOf(gateway), [{ kind: 'reload_failed', line }])
  t.match(await gateway.change(YAML.replace('ledger: {', 'ledger: { keep: 30d,')), { applied: true })
  t.match(await alertsOf(gateway), [
    { kind: 'restart_needed', severity: 'warning', message: 'Restart needed: ledger.keep changed' },
  ])
  t.match((await browser.ask('/configuration')).json, { failure: null, restart_needed: ['ledger.keep'] })
})

t.test('an expiring certificate causes an alert until the certificate is renewed', async t => {
  const { certFile, keyFile, ...lasting } = certificateFiles(t)
  const write = ({ cert, key }: Certificate): void => {
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
  }
  write(selfSigned('P-256', inDays(-80), inDays(10)))
  const gateway = await startConsole(
    t, YAML.replace('server: {', `$& tls: { cert: "${certFile}", key: "${keyFile}" },`),
  )
  t.match(await alertsOf(gateway), [
    { kind: 'certificate', severity: 'warning', message: /^server\.tls\.cert: certificate 1 .* soon, on .* SIGHUP/, line: 2 },
  ])
  write(selfSigned('P-256', inDays(-80), inDays(-1)))
  t.match(await gateway.change(), { applied: true })
  t.match(await alertsOf(gateway), [{ kind: 'certificate', severity: 'error', message: /has run out, on/ }])
  write(lasting)
  t.match(await gateway.change(), { applied: true })
  t.strictSame(await alertsOf(gateway), [])
})

t.test('a configuration without keys and an unreadable key store each cause an alert', async t => {
  const gateway = await startConsole(t, YAML.replace(/^keys.*$/m, 'keys: []'))
  t.match(await alertsOf(gateway), [{ kind: 'no_keys', severity: 'error' }])
  const browser = await gateway.login(OPS)
  t.equal((await browser.ask('/keys', { method: 'POST', body: { name: 'made' } })).status, 201)
  t.strictSame(await alertsOf(gateway), [])
  writeFileSync(join(gateway.file, '..', 'data', 'keys.db'), 'this is no database')
  await gateway.waitForLog(({ msg }) => String(msg).startsWith('stored keys cannot be read'))
  const live = await browser.ask('/live')
  t.match(live.json, { concerns: [{ kind: 'key_store' }] })
})

t.test('an almost used budget and an unpriced model each cause an alert', async t => {
  const yaml = YAML.replace(
    'models: [demo] }', 'models: [demo], limits: { budget: { usd: 0.00004, per: day } } }',
  )
    .replace('input: 1, output: 2', 'input: 0, output: 0, per_request: 0.000038')
  const gateway = await startConsole(t, yaml)
  await chat(gateway, KEY, 'sim')
  const holder = 'sk-second-0123456789abcdef'
  t.equal((await chat(gateway, holder)).status, 200)
  const admin = await gateway.login(OPS)
  const seen = async () => ((await admin.ask('/logs')).json as { rows: unknown[] }).rows.length
  while (await seen() < 2) await new Promise(resolve => setImmediate(resolve))
  const alerts = await alertsOf(gateway)
  t.match(alerts.map(({ kind, subject }) => [kind, subject]).sort(), [
    ['budget', 'second'], ['unpriced_model', 'sim'],
  ])
  t.match(await alertsOf(gateway, { key: holder }), [{ kind: 'budget', subject: 'second' }])
  t.strictSame(await alertsOf(gateway, { key: KEY }), [])
})

t.test('at most 100 alerts are listed, even if clients send more unknown models', async t => {
  const gateway = await startConsole(t)
  for (let n = 0; n <= 100; n++) await chat(gateway, KEY, `sim-${n}`)
  const admin = await gateway.login(OPS)
  const seen = async () => ((await admin.ask('/logs?limit=200')).json as { rows: unknown[] }).rows.length
  while (await seen() < 101) await new Promise(resolve => setImmediate(resolve))
  t.equal((await alertsOf(gateway)).length, 100)
})

t.test('administrators see the line of the setting that an alert is about, and holders of keys do not', async t => {
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(401).end())
  const yaml = YAML.replace('sim: { simulator: true }', `\n  sim: { simulator: true },\n  far: { url: "${upstream.url}" }`)
    .replace('routes: [', 'routes: [{ model: lost, to: far },')
    .replace('models: [demo] }', 'group: small,\n  limits: { budget: { usd: 0.00004, per: day } } }')
    .replace('input: 1, output: 2', 'input: 0, output: 0, per_request: 0.000038')
  const gateway = await startConsole(t, `${yaml}groups:\n  small:\n    limits: { budget: { usd: 0.000038, per: day } }\n`)
  for (const [key, model] of [[KEY, 'sim'], [KEY, 'lost'], [SECOND_KEY, 'demo']] as const) await chat(gateway, key, model)
  const admin = await gateway.login(OPS)
  const seen = async () => ((await admin.ask('/logs')).json as { rows: unknown[] }).rows.length
  while (await seen() < 3) await new Promise(resolve => setImmediate(resolve))
  const { text } = (await admin.ask('/configuration')).json as { text: string }
  const lines = text.split('\n')
  const shown = (await alertsOf(gateway)).map(({ kind, subject, line }) => [kind, subject, line === null ? null : lines[line - 1]?.trim().slice(0, 10)])
  t.strictSame(shown.sort(), [
    ['budget', 'second', 'keys: [{ n'],
    ['budget', 'small', 'limits: { '],
    ['unpriced_model', 'sim', 'models: { '],
    ['upstream_key_rejected', 'far', 'far: { url'],
  ].sort())
  t.match(await alertsOf(gateway, { key: SECOND_KEY }), [{ kind: 'budget', line: null }])
})

t.test('the alert for an unpriced model changes after the model gets a price', async t => {
  const gateway = await startConsole(t)
  await chat(gateway, KEY, 'sim')
  const admin = await gateway.login(OPS)
  const seen = async () => ((await admin.ask('/logs')).json as { rows: unknown[] }).rows.length
  while (await seen() < 1) await new Promise(resolve => setImmediate(resolve))
  const messages = async () => (await alertsOf(gateway)).map(({ message }) => message)
  t.strictSame(await messages(), [
    'No price for sim: cost unknown for 1 request in the last 24 hours. Add a price under models in gateway.yaml',
  ])
  await gateway.change(YAML.replace('models: {', 'models: { sim: { price: { input: 1, output: 2 } },'))
  gateway.clock.advance(31_000)
  t.strictSame(await messages(), [
    'Cost unknown for 1 request in the last 24 hours for sim: no price at that time, or none for the usage',
  ])
})

t.test('the holder of a key sees the limits of the key and the remaining requests', async t => {
  const gateway = await startConsole(
    t, `${YAML}\nlimits: { requests_per_minute: 10, models: { "sim*": { concurrent: 1 } } }\n`,
  )
  await chat(gateway)
  const holder = await gateway.login({ key: KEY })
  t.match((await holder.ask('/own')).json, {
    name: 'test', models: null, limits: { requests_per_minute: 10, models: { 'sim*': { concurrent: 1 } } },
    requests: { limit: 10, remaining: 9, reset_ms: Number }, tokens: null,
  })
})

t.test('a right-to-left name in a message does not reorder the text after the name', async t => {
  const names = { hebrew: '\u05d0\u05d1', override: 'sim\u202ex', closing: 'sim\u2069\u202ex' }
  const yaml = YAML.replace('[demo, "sim*"]', `[demo, "sim*", "${names.hebrew}"]`)
    .replace('name: second', `name: "${names.hebrew}"`)
    .replace('models: [demo] }', 'limits: { budget: { usd: 0.00004, per: day } } }')
    .replace('input: 1, output: 2', 'input: 0, output: 0, per_request: 0.000038')
  const gateway = await startConsole(t, yaml)
  for (const model of Object.values(names)) await chat(gateway, KEY, model)
  t.equal((await chat(gateway, SECOND_KEY)).status, 200)
  const admin = await gateway.login(OPS)
  const seen = async () => ((await admin.ask('/logs')).json as { rows: unknown[] }).rows.length
  while (await seen() < 4) await new Promise(resolve => setImmediate(resolve))
  const whole = (message: string) => message.replace(/\u2068[^\u2066-\u2069]*\u2069/g, 'NAME')
  const alerts = await alertsOf(gateway)
  t.same(new Set(alerts.map(({ message }) => whole(message))), new Set([
    'Budget 95 % used: NAME, $0.00004 per day',
    'No price for NAME: cost unknown for 1 request in the last 24 hours. Add a price under models in gateway.yaml',
  ]))
  t.same(
    alerts.filter(({ kind }) => kind === 'unpriced_model').map(({ subject }) => subject).sort(),
    Object.values(names).sort(), 'the subject is the name without added characters',
  )
})
