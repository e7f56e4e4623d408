import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { freePort } from '../support/free-port.ts'
import { KEY, startTestGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { samplesOf, scrape, sum } from '../support/metrics.ts'

const missing = (command: string) => spawnSync(command, ['--version']).error === undefined ? false : `needs ${command}`

async function start(t: Test, more = ''): Promise<TestGateway & { readonly metrics: string }> {
  const gateway = await startTestGateway(t, `
upstreams: { sim: { simulator: true } }
routes: [{ model: known, to: sim }, { path: /v1/chat/*, model: "*", to: sim }]
ledger: { file: gateway.db }
telemetry: { prometheus: { listen: 127.0.0.1:0 }${more} }
`)
  return { ...gateway, metrics: String(gateway.addresses.metrics) }
}

async function ask({ url }: { readonly url: string }, model: string, path = '/v1/chat/completions'): Promise<number> {
  const response = await fetch(url + path, {
    method: 'POST', body: JSON.stringify({ model, messages: [] }),
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  })
  await response.text()
  return response.status
}

t.test('gateway_requests_in_flight is 0 for protocols without running requests', async t => {
  const gateway = await start(t)
  const inFlight = async () => Object.fromEntries(samplesOf(await (await fetch(`${gateway.metrics}/metrics`)).text())
    .filter(({ name }) => name === 'gateway_requests_in_flight').map(({ labels, value }) => [labels.protocol, value]))
  const none = { chat: 0, responses: 0, media: 0, messages: 0, generate: 0 }
  t.match(await inFlight(), none)
  const abort = new AbortController()
  const running = fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', body: JSON.stringify({ model: 'sim,headers_delay=5m', messages: [], stream: true }), signal: abort.signal,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
  }).catch(() => null)
  while ((await inFlight())['chat'] !== 1);
  abort.abort()
  await running
  while ((await inFlight())['chat'] !== 0);
  t.match(await inFlight(), none)
})

const HOSTILE = ['a"b', 'a\\b', 'a\nb', 'a\u0000b', 'a\u202eb', '\ud800', 'x'.repeat(99) + '\u{1f600}', '{le="1"}', '# HELP a']

t.test('unknown and hostile model names make a limited number of valid series', async t => {
  const gateway = await start(t)
  for (const name of HOSTILE) await ask(gateway, name)
  const names = Array.from({ length: 10_000 }, (_, n) => `invented-${n}`)
  await Promise.all(Array.from({ length: 32 }, async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) await ask(gateway, name)
  }))
  await ask(gateway, 'known')
  await ask(gateway, 'nobody-routes-this', '/v1/embeddings')
  const text = await (await fetch(`${gateway.metrics}/metrics`)).text()
  const samples = samplesOf(text)
  const models = new Set(samples.filter(({ name }) => name === 'gateway_requests_total').map(({ labels }) => labels.model))
  t.equal(models.size, 203, '200 names, known, other, and none')
  t.ok(models.has('known') && models.has('other') && models.has('') && !models.has('nobody-routes-this'))
  t.ok([...models].every(model => (model ?? '').length <= 120))
  t.equal(sum(samples, 'gateway_requests_total'), 10_002 + HOSTILE.length)
  const circuits = samples.filter(({ name }) => name === 'gateway_circuit_state')
  t.ok(circuits.length <= 203, `${circuits.length} circuits`)
  if (missing('promtool')) {
    t.pass('promtool', { skip: missing('promtool') })
    return
  }
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
  t.equal(checked.status, 0, checked.stderr)
})

t.test('the metrics listener serves text and OpenMetrics, only at /metrics', async t => {
  const { metrics, url } = await start(t)
  await ask({ url }, 'known')
  const get = (path: string, init?: RequestInit) => fetch(metrics + path, init)
  const plain = await get('/metrics')
  t.match(plain.headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  t.match(await plain.text(), /^gateway_requests_total\{.*\} 1$/m)
  const open = await get('/metrics', { headers: { accept: 'application/openmetrics-text; version=1.0.0' } })
  t.match(open.headers.get('content-type'), /^application\/openmetrics-text/)
  const text = await open.text()
  t.match(text, /^# TYPE gateway_requests counter$/m)
  t.match(text, /# EOF\n$/)
  t.match(await (await get('/metrics')).text(), /^# TYPE gateway_requests_total counter$/m, 'OpenMetrics does not change the text format')
  t.equal((await get('/')).status, 404)
  t.equal((await get('/metrics', { method: 'POST' })).status, 405)
  t.equal((await fetch(`${url}/metrics`)).status, 404, 'the listener for clients has no metrics')
})

t.test('`conventions: latest` uses the newer names of GenAI metrics', async t => {
  const gateway = await start(t, ', conventions: latest')
  await ask(gateway, 'known')
  const samples = await scrape(gateway.metrics)
  t.equal(sum(samples, 'gen_ai_client_inference_duration_seconds_count'), 1)
  t.ok(sum(samples, 'gen_ai_client_inference_usage_output_tokens_total') > 0)
  t.equal(samples.some(({ name }) => name.startsWith('gen_ai_client_operation')), false)
})

t.test('Prometheus scrapes the gateway and answers queries', { skip: missing('prometheus') }, async t => {
  const gateway = await start(t)
  for (let n = 0; n < 3; n++) await ask(gateway, 'known')
  const dir = t.testdir({})
  const target = new URL(gateway.metrics).host
  writeFileSync(`${dir}/prometheus.yml`, `
global: { scrape_interval: 100ms, scrape_timeout: 100ms }
scrape_configs: [{ job_name: model-gateway, static_configs: [{ targets: ["${target}"] }] }]
`)
  const port = await freePort()
  const child = spawn('prometheus', [
    `--config.file=${dir}/prometheus.yml`, `--storage.tsdb.path=${dir}/data`, `--web.listen-address=127.0.0.1:${port}`,
  ], { stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await once(child, 'close')
  })
  const ready = Promise.withResolvers<void>()
  createInterface(child.stderr).on('line', line => line.includes('ready to receive web requests') && ready.resolve())
  await ready.promise
  for (;;) {
    const query = encodeURIComponent('sum by (model) (gateway_requests_total)')
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${query}`)
    const { data } = await response.json() as { data: { result: { metric: object, value: [number, string] }[] } }
    const [first] = data.result
    if (first !== undefined) {
      t.strictSame(first.metric, { model: 'known' })
      t.equal(first.value[1], '3')
      return
    }
    await setImmediate()
  }
})
