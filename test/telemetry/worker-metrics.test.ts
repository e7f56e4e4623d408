import { Counter, Gauge, Registry } from 'prom-client'
import t from 'tap'
import { BUDGET_SPENT } from '../../src/telemetry/gauges.ts'
import { WorkerMetrics } from '../../src/telemetry/worker-metrics.ts'
import type { MetricObject } from '../../src/telemetry/worker-metrics.ts'

async function counted(count: number): Promise<MetricObject[]> {
  const registry = new Registry()
  new Counter({ name: 'requests_total', help: 'Requests.', labelNames: ['model'], registers: [registry] }).inc({ model: 'a' }, count)
  return registry.getMetricsAsJSON()
}

async function running(count: number): Promise<MetricObject[]> {
  const registry = new Registry()
  new Gauge({ name: 'running', help: 'Running.', registers: [registry] }).set(count)
  return registry.getMetricsAsJSON()
}

async function shown(metrics: WorkerMetrics, spend: ReadonlyMap<string, bigint> = new Map()): Promise<string[]> {
  const texts = await Promise.all(metrics.registries(spend).map(registry => registry.metrics()))
  return texts.join('\n').split('\n').filter(line => line !== '' && !line.startsWith('#'))
}

t.test('after a worker ends, its counts are kept and its gauges are removed', async t => {
  const metrics = new WorkerMetrics()
  metrics.add(1, { counted: await counted(2), current: await running(5) })
  metrics.add(2, { counted: await counted(3), current: await running(7) })
  metrics.add(1, { counted: await counted(4), current: await running(6) })
  t.strictSame(await shown(metrics), ['requests_total{model="a"} 9', 'running 13'])
  metrics.remove(1)
  t.strictSame(await shown(metrics), ['requests_total{model="a"} 9', 'running 7'])
})

t.test('each report of a worker is added once', async t => {
  const metrics = new WorkerMetrics()
  for (let n = 0; n < 40; n++) metrics.add(1, { counted: await counted(1), current: [] })
  t.strictSame(await shown(metrics), ['requests_total{model="a"} 40'])
  t.strictSame(await shown(metrics), ['requests_total{model="a"} 40'])
})

t.test('budget gauges have the spend of the supervisor, separately for a key and a group with the same name', async t => {
  const registry = new Registry()
  new Gauge({ name: BUDGET_SPENT.key, help: 'k', labelNames: ['key'], registers: [registry] }).set({ key: 'a' }, 99)
  const group = new Gauge({ name: BUDGET_SPENT.group, help: 'g', labelNames: ['group'], registers: [registry] })
  group.set({ group: 'a' }, 99)
  group.set({ group: 'b' }, 99)
  const metrics = new WorkerMetrics()
  metrics.add(1, { counted: [], current: await registry.getMetricsAsJSON() })
  t.strictSame(await shown(metrics, new Map([['a', 250_000_000_000n], ['group\na', 3_000_000_000_000n]])), [
    'gateway_budget_spent_usd{key="a"} 0.25', 'gateway_group_budget_spent_usd{group="a"} 3', 'gateway_group_budget_spent_usd{group="b"} 0',
  ])
})
