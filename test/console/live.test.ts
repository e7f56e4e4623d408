import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PASSWORD, SECOND_KEY, YAML, chat, startConsole } from '../behaviour/console/console.ts'
import type { TestConsole } from '../behaviour/console/console.ts'
import { certificateFiles, inDays, selfSigned } from '../support/certificate.ts'
import type { Certificate } from '../support/certificate.ts'
import { KEY } from '../support/gateway.ts'
import { startUpstream } from '../support/upstream.ts'

const OPS = { name: 'ops', password: PASSWORD }

interface Concern {
  readonly kind: string
  readonly severity: string
  readonly message: string
  readonly subject: string | null
}

async function concernsOf(gateway: TestConsole, who: object = OPS): Promise<Concern[]> {
  const browser = await gateway.login(who)
  return ((await browser.ask('/live')).json as { concerns: Concern[] }).concerns
}

t.test('where all is well there is nothing to look at', async t => {
  const gateway = await startConsole(t)
  await chat(gateway)
  const browser = await gateway.login(OPS)
  t.match((await browser.ask('/live')).json, {
    status: 'ok', running: 0, running_streams: 0, exchanges: { length: 0 }, concerns: { length: 0 },
  })
})

t.test('an upstream that refuses the operator\'s credential, and one that does not answer', async t => {
  let status = 401
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(status).end())
  const gateway = await startConsole(
    t, YAML.replace('sim: { simulator: true }', `sim: { url: "${upstream.url}" }`),
  )
  await chat(gateway)
  t.match(await concernsOf(gateway), [{
    kind: 'upstream_key_rejected', severity: 'error', subject: 'sim', message: /401.*upstreams\.sim\.auth/,
  }])
  status = 500
  for (let i = 0; i < 3; i++) await chat(gateway)
  const kinds = (await concernsOf(gateway)).map(({ kind }) => kind)
  t.same(kinds, ['upstream_key_rejected', 'circuit_open'])
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
    (await concernsOf(gateway)).map(({ kind }) => kind), ['upstream_key_rejected'],
    'a quarter of an hour later it is history',
  )
})

t.test('an upstream that fails its checks and was asked for nothing', async t => {
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(500).end())
  const gateway = await startConsole(t, YAML
    .replace('upstreams: {', `$& gone: { url: "${upstream.url}", health: { path: /, every: 10ms } },`)
    .replace('routes: [', 'routes: [{ model: lost, to: { upstream: gone, model: x } },'))
  await gateway.waitForLog(line => line['msg'] === 'the upstream is not well')
  t.match(await concernsOf(gateway), [{ kind: 'circuit_open', subject: 'gone', message: /^gone fails/ }])
  const browser = await gateway.login(OPS)
  const { upstreams } = (await browser.ask('/upstreams')).json as { upstreams: { name: string }[] }
  t.match(upstreams.find(({ name }) => name === 'gone'), {
    health: 'down', candidates: [{ model: null, circuit: 'open', opens_in_ms: null }],
  })
  t.match((await browser.ask('/routes')).json, {
    routes: [{ targets: [{ upstream: 'gone', circuit: 'open' }] }],
  })
})

t.test('a configuration that was not taken, and one that waits for a restart', async t => {
  const gateway = await startConsole(t)
  t.match(await gateway.change(YAML.replace('routes:', 'rautes:')), { applied: false })
  t.match(await concernsOf(gateway), [
    { kind: 'reload_failed', message: /gateway\.yaml:\d+:\d+: .*did you mean "routes"/ },
  ])
  const browser = await gateway.login(OPS)
  const { json } = await browser.ask('/configuration')
  t.match(json, { failure: { problems: [{ severity: 'error', place: /gateway\.yaml:\d+:\d+/ }] } })
  t.match((json as { text: string }).text, 'routes:', 'what is in force is shown, not what the file says now')
  t.notMatch((json as { text: string }).text, 'rautes')
  t.match(await gateway.change(YAML.replace('ledger: {', 'ledger: { keep: 30d,')), { applied: true })
  t.match(await concernsOf(gateway), [
    { kind: 'restart_needed', severity: 'warning', message: /ledger\.keep/ },
  ])
  t.match((await browser.ask('/configuration')).json, { failure: null, restart_needed: ['ledger.keep'] })
})

t.test('a certificate that should be renewed, until it is', async t => {
  const { certFile, keyFile, ...lasting } = certificateFiles(t)
  const write = ({ cert, key }: Certificate): void => {
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
  }
  write(selfSigned('P-256', inDays(-80), inDays(10)))
  const gateway = await startConsole(
    t, YAML.replace('server: {', `$& tls: { cert: "${certFile}", key: "${keyFile}" },`),
  )
  t.match(await concernsOf(gateway), [
    { kind: 'certificate', severity: 'warning', message: /^server\.tls\.cert: certificate 1 .* soon, on .* SIGHUP/ },
  ])
  write(selfSigned('P-256', inDays(-80), inDays(-1)))
  t.match(await gateway.change(), { applied: true })
  t.match(await concernsOf(gateway), [{ kind: 'certificate', severity: 'error', message: /has run out, on/ }])
  write(lasting)
  t.match(await gateway.change(), { applied: true })
  t.strictSame(await concernsOf(gateway), [])
})

t.test('nobody can get in, and the store of keys is in trouble', async t => {
  const gateway = await startConsole(t, YAML.replace(/^keys.*$/m, 'keys: []'))
  t.match(await concernsOf(gateway), [{ kind: 'no_keys', severity: 'error' }])
  const browser = await gateway.login(OPS)
  t.equal((await browser.ask('/keys', { method: 'POST', body: { name: 'made' } })).status, 201)
  t.strictSame(await concernsOf(gateway), [])
  writeFileSync(join(gateway.file, '..', 'data', 'keys.db'), 'this is no database')
  await gateway.waitForLog(({ msg }) => String(msg).startsWith('stored keys cannot be read'))
  const live = await browser.ask('/live')
  t.match(live.json, { concerns: [{ kind: 'key_store' }] })
})

t.test('a budget near its end, and a model without a price', async t => {
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
  const concerns = await concernsOf(gateway)
  t.match(concerns.map(({ kind, subject }) => [kind, subject]).sort(), [
    ['budget', 'second'], ['unpriced_model', 'sim'],
  ])
  t.match(await concernsOf(gateway, { key: holder }), [{ kind: 'budget', subject: 'second' }])
  t.strictSame(await concernsOf(gateway, { key: KEY }), [])
})

t.test('a hundred concerns are told, however many models clients invent', async t => {
  const gateway = await startConsole(t)
  for (let n = 0; n <= 100; n++) await chat(gateway, KEY, `sim-${n}`)
  const admin = await gateway.login(OPS)
  const seen = async () => ((await admin.ask('/logs?limit=200')).json as { rows: unknown[] }).rows.length
  while (await seen() < 101) await new Promise(resolve => setImmediate(resolve))
  t.equal((await concernsOf(gateway)).length, 100)
})

t.test('whoever has given a model its price is not told to do so', async t => {
  const gateway = await startConsole(t)
  await chat(gateway, KEY, 'sim')
  const admin = await gateway.login(OPS)
  const seen = async () => ((await admin.ask('/logs')).json as { rows: unknown[] }).rows.length
  while (await seen() < 1) await new Promise(resolve => setImmediate(resolve))
  const told = async () => (await concernsOf(gateway)).map(({ message }) => message)
  t.strictSame(await told(), [
    'Nobody knows what sim costs (one request of late): give it a price under models',
  ])
  await gateway.change(YAML.replace('models: {', 'models: { sim: { price: { input: 1, output: 2 } },'))
  gateway.clock.advance(31_000)
  t.strictSame(await told(), [
    'Nobody knows what one request for sim cost of late: it had no price then, or has none for what was used',
  ])
})

t.test('the present limits of the own key', async t => {
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

t.test('a name that is written from the right turns nothing else of a sentence round', async t => {
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
  const concerns = await concernsOf(gateway)
  t.same(new Set(concerns.map(({ message }) => whole(message))), new Set([
    'The budget of NAME, 0.00004 USD a day, is used to 95 %',
    'Nobody knows what NAME costs (one request of late): give it a price under models',
  ]))
  t.same(
    concerns.filter(({ kind }) => kind === 'unpriced_model').map(({ subject }) => subject).sort(),
    Object.values(names).sort(), 'the name itself is as it is',
  )
})
