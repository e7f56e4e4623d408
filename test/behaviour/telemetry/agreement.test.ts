import { once } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import { gateway as run, listening } from '../../cli/command.ts'
import type { Running } from '../../cli/command.ts'
import { KEY } from '../../support/gateway.ts'
import { scrape, sum } from '../../support/metrics.ts'
import type { Sample } from '../../support/metrics.ts'
import { startUpstream } from '../../support/upstream.ts'
import { connect, post } from '../../support/wire.ts'

/** A line of `gateway usage --json`. */
interface Row {
  readonly input_tokens: number | null
  readonly output_tokens: number | null
  readonly cost_usd: number | null
}

interface Usage {
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** USD */
  readonly cost: number
  readonly unpriced: number
}

interface Metered extends Running {
  readonly dir: string
  readonly metrics: string
}

/** A gateway with the simulator, an upstream that always fails, and a model without a price. */
async function startMetered(t: Test, dir: string, failing: string, workers: number): Promise<Metered> {
  const running = await listening(t, ['serve', '--config', `${dir}/gateway.yaml`], { env: { FAILING: failing, WORKERS: String(workers) } })
  const metrics = String(running.lines.find(({ msg }) => msg === 'listening')?.metrics)
  return { ...running, dir, metrics }
}

function configFile(): string {
  return `
server: { listen: 127.0.0.1:0, workers: "\${WORKERS}", drain: 20s }
upstreams:
  sim: { simulator: true }
  failing: { url: "\${FAILING}" }
routes:
  - { model: free, to: { upstream: sim, model: "sim,tokens=7" } }
  - { model: moved, to: [{ upstream: failing }, { upstream: sim, model: "sim,tokens=5" }] }
  - { model: broken, to: [{ upstream: sim, model: "sim,cut_after=3" }, { upstream: sim, model: "sim,tokens=20" }], resume: hold }
  - { path: /v1/*, to: sim }
models:
  moved: { price: { input: 3, output: 15 } }
  broken: { price: { input: 3, output: 15 } }
  "sim,tokens=5": { price: { input: 3, output: 15 } }
  "sim,tokens=20": { price: { input: 0.1, output: 0.7 } }
  "sim,stall_after=3": { price: { input: 0.1, output: 0.7 } }
groups:
  team: { limits: { budget: { usd: 200, per: month } } }
keys:
  - { name: test, key: ${KEY}, group: team, limits: { budget: { usd: 100, per: month } } }
  - { name: small, key: sk-small-0123456789abcdef, limits: { requests_per_minute: 2 } }
ledger: { file: gateway.db }
telemetry: { prometheus: { listen: 127.0.0.1:0 } }
`
}

async function ask(base: string, body: object, key = KEY): Promise<number> {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST', body: JSON.stringify({ messages: [{ role: 'user', content: 'hello' }], ...body }),
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
  })
  await response.text().catch(() => '')
  return response.status
}

/** Streams, refusals, failures, failover, unknown keys and models, and a client that leaves. */
async function traffic(t: Test, { base }: Running): Promise<void> {
  for (let n = 0; n < 4; n++) {
    await ask(base, { model: 'moved' })
    await ask(base, { model: 'moved', stream: true })
    await ask(base, { model: 'broken', stream: true })
    await ask(base, { model: 'free', stream: n % 2 === 0 })
    await ask(base, { model: 'sim,tokens=20' })
    await ask(base, { model: 'sim,error=500' })
    await ask(base, { model: 'free' }, 'sk-wrong-0123456789abcdef')
    await ask(base, { model: 'free' }, 'sk-small-0123456789abcdef')
  }
  const wire = await connect(t, base)
  wire.send(post('/v1/chat/completions', { model: 'sim,stall_after=3', stream: true, messages: [] }))
  await wire.until(/data: /)
  wire.socket.destroy()
}

/** Reads ledger and metrics until both have all ended requests. */
async function bothOf(gateway: Metered): Promise<{ readonly usage: Usage, readonly samples: Sample[] }> {
  for (;;) {
    const samples = await scrape(gateway.metrics)
    const usage = await usageOf(gateway)
    const isSettled = sum(samples, 'gateway_requests_in_flight') === 0 && sum(samples, 'gateway_ledger_pending_rows') === 0
    const again = await scrape(gateway.metrics)
    if (isSettled && sum(samples, 'gateway_requests_total') === sum(again, 'gateway_requests_total')) return { usage, samples: again }
  }
}

async function usageOf({ dir }: Pick<Metered, 'dir'>): Promise<Usage> {
  const { stdout } = await run(['usage', '--config', `${dir}/gateway.yaml`, '--json'], { env: { FAILING: 'http://127.0.0.1:1', WORKERS: '1' } })
  const rows = stdout.trim().split('\n').map(line => JSON.parse(line) as Row)
  const total = (field: keyof Row) => rows.reduce((all, row) => all + (row[field] ?? 0), 0)
  return {
    requests: rows.length,
    inputTokens: total('input_tokens'),
    outputTokens: total('output_tokens'),
    cost: total('cost_usd'),
    unpriced: rows.filter(row => row.cost_usd === null).length,
  }
}

function agree(t: Test, usage: Usage, parts: readonly Sample[][]): void {
  const total = (name: string, labels = {}) => parts.reduce((all, samples) => all + sum(samples, name, labels), 0)
  t.equal(total('gateway_requests_total'), usage.requests, 'requests')
  t.equal(total('gateway_tokens_total', { type: 'input' }), usage.inputTokens, 'input tokens')
  t.equal(total('gateway_tokens_total', { type: 'output' }), usage.outputTokens, 'output tokens')
  t.equal(total('gateway_unpriced_requests_total'), usage.unpriced, 'unpriced requests')
  const difference = Math.abs(total('gateway_cost_usd_total') - usage.cost)
  t.ok(difference < 1e-9, `cost: ${difference} USD apart`)
}

for (const workers of [1, 2]) {
  t.test(`after mixed traffic the counters equal the ledger, with workers: ${workers}`, async t => {
    const failing = await startUpstream(t, (_req, res) => res.writeHead(503).end('{}'))
    const gateway = await startMetered(t, t.testdir({ 'gateway.yaml': configFile() }), failing.url, workers)
    await traffic(t, gateway)
    const { usage, samples } = await bothOf(gateway)
    t.ok(usage.requests >= 33)
    agree(t, usage, [samples])
    t.equal(sum(samples, 'gateway_failovers_total', { from: 'failing', to: 'sim' }) > 0, true)
    t.ok(sum(samples, 'gateway_limit_rejections_total', { key: 'small', limit: 'requests' }) >= 2)
    t.equal(sum(samples, 'gateway_requests_total', { end: 'client_gone' }), 1)
    t.ok(sum(samples, 'gateway_overhead_seconds_count') > 0)
    t.equal(sum(samples, 'gateway_budget_limit_usd', { key: 'test' }), 100)
    t.equal(sum(samples, 'gateway_group_budget_limit_usd', { group: 'team' }), 200)
    for (const name of ['gateway_budget_spent_usd', 'gateway_group_budget_spent_usd']) {
      t.ok(Math.abs(sum(samples, name) - usage.cost) < 1e-9, `${name}: ${sum(samples, name)}, ${usage.cost} USD in the ledger`)
    }
  })
}

t.test('the counters of a killed process and its successor together equal the ledger', async t => {
  const dir = t.testdir({ 'gateway.yaml': configFile() })
  const failing = await startUpstream(t, (_req, res) => res.writeHead(503).end('{}'))
  const first = await startMetered(t, dir, failing.url, 1)
  await traffic(t, first)
  const wire = await connect(t, first.base)
  wire.send(post('/v1/chat/completions', { model: 'sim,stall_after=3', stream: true, messages: [] }))
  await wire.until(/data: /)
  const before = await untilPending(first, 0)
  first.child.kill('SIGKILL')
  await first.ended
  const next = await startMetered(t, dir, failing.url, 1)
  await ask(next.base, { model: 'moved' })
  const { usage, samples } = await bothOf(next)
  t.equal(sum(samples, 'gateway_requests_total', { end: 'interrupted' }), 1, 'the row that the first process left')
  agree(t, usage, [before, samples])
})

t.test('the metrics keep the counts of a killed worker', async t => {
  const dir = t.testdir({ 'gateway.yaml': configFile() })
  const gateway = await startMetered(t, dir, 'http://127.0.0.1:1', 2)
  for (let n = 0; n < 12; n++) await ask(gateway.base, { model: 'sim,tokens=20' })
  const before = await scrape(gateway.metrics)
  t.equal(sum(before, 'gateway_requests_total'), 12)
  const { worker } = await (await fetch(`${gateway.base}/api/status`)).json() as { worker: number }
  const { default: { execFileSync } } = await import('node:child_process')
  const [victim] = execFileSync('pgrep', ['-P', String(gateway.child.pid)]).toString().split('\n')
  t.ok(worker > 0 && victim)
  process.kill(Number(victim), 'SIGKILL')
  await gateway.logged('worker listens again')
  t.equal(sum(await scrape(gateway.metrics), 'gateway_requests_total'), 12)
  await ask(gateway.base, { model: 'sim,tokens=20' })
  t.equal(sum(await scrape(gateway.metrics), 'gateway_requests_total'), 13)
})

/** Resolves with a scrape that shows `rows` pending rows of the ledger. */
async function untilPending(gateway: Metered, rows: number): Promise<Sample[]> {
  for (;;) {
    const samples = await scrape(gateway.metrics)
    if (sum(samples, 'gateway_ledger_pending_rows') === rows) return samples
    await once(gateway.child.stdout!, 'data', { signal: AbortSignal.timeout(50) }).catch(() => {})
  }
}
