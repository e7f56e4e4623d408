import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createGauges } from '../../src/telemetry/gauges.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import { CallerLabels } from '../../src/telemetry/caller-labels.ts'
import { ModelLabels } from '../../src/telemetry/model-labels.ts'
import { ROOT } from '../cli/command.ts'

const DEPLOY = join(ROOT, 'deploy')
const promtool = spawnSync('promtool', ['--version']).error === undefined ? false : 'needs promtool'

/** Names of metrics that a scrape can contain, with the suffixes of histograms. */
function metricNames(): Set<string> {
  const gauges = createGauges({
    inFlight: () => new Map(), queued: () => new Map(), circuits: () => [], hookCircuits: () => [], budgets: () => [], ledger: () => null, shipping: () => null, stores: () => [], certificateEnd: () => 1,
    reloads: () => ({ applied: 0, rejected: 0, loadedAt: 0 }),
  }, '0')
  const metrics = [...new Metrics('v1.41', new ModelLabels(), new CallerLabels()).registry.getMetricsAsArray(), ...gauges.getMetricsAsArray()]
  const suffixes = (type: string) => type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
  return new Set(metrics.flatMap(({ name, type }) => suffixes(String(type)).map(suffix => name + suffix)))
}

/** The names of metrics in a query: words that are not a function, label or keyword. */
function namesIn(query: string): string[] {
  const bare = query.replace(/\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without)\s*\([^)]*\)|"[^"]*"/g, '')
  return [...bare.matchAll(/\b[a-z_][a-z0-9_]*\b(?!\s*\()/g)].map(([name]) => name).filter(name => !['by', 'or', 'and', 'up'].includes(name))
}

t.test('each query of a dashboard or alert rule names only existing metrics', async t => {
  const known = metricNames()
  const dashboards = readdirSync(join(DEPLOY, 'grafana'))
  t.ok(dashboards.length >= 5)
  for (const file of dashboards) {
    const { panels } = JSON.parse(readFileSync(join(DEPLOY, 'grafana', file), 'utf8')) as { panels: { targets: { expr: string }[] }[] }
    for (const { expr } of panels.flatMap(({ targets }) => targets)) {
      const names = namesIn(expr)
      t.ok(names.length > 0 && names.every(name => known.has(name)), `${file}: ${expr}`)
    }
  }
  const rules = readFileSync(join(DEPLOY, 'prometheus/rules.yml'), 'utf8')
  const queries = [...rules.matchAll(/expr: (?:\|\n((?: {10}.*\n)+)|(.*))/g)].map(([, block, line]) => block ?? line ?? '')
  t.ok(queries.length >= 9)
  for (const query of queries) t.ok(namesIn(query).every(name => known.has(name)), query.trim())
})

t.test('the alerts are valid and pass their tests', { skip: promtool }, async t => {
  const cwd = join(DEPLOY, 'prometheus')
  t.match(execFileSync('promtool', ['check', 'rules', 'rules.yml'], { cwd }).toString(), /SUCCESS/)
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'rules.test.yml'], { cwd, encoding: 'utf8' })
  t.equal(status, 0, stdout + stderr)
  t.equal(spawnSync('promtool', ['check', 'config', 'prometheus.yml'], { cwd }).status, 0)
})
