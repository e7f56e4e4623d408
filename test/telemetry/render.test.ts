import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import t from 'tap'
import { contentType, renderMetrics } from '../../src/telemetry/render.ts'

function filled(): Registry {
  const registry = new Registry()
  const counter = new Counter({ name: 'requests_total', help: 'Requests.', labelNames: ['model'], registers: [registry] })
  counter.inc({ model: 'a' }, 2)
  new Gauge({ name: 'running', help: 'Running.', registers: [registry] }).set(3)
  new Histogram({ name: 'seconds', help: 'Seconds.', buckets: [1], registers: [registry] }).observe(0.5)
  return registry
}

t.test('metrics are written in the text format', async t => {
  t.equal(await renderMetrics([filled()], 'text'), `${[
    '# HELP requests_total Requests.', '# TYPE requests_total counter', 'requests_total{model="a"} 2', '# HELP running Running.', '# TYPE running gauge', 'running 3',
    '# HELP seconds Seconds.', '# TYPE seconds histogram', 'seconds_bucket{le="1"} 1', 'seconds_bucket{le="+Inf"} 1', 'seconds_sum 0.5', 'seconds_count 1',
  ].join('\n')}\n`)
  t.match(contentType('text'), /^text\/plain/)
})

t.test('OpenMetrics: the family name of a counter has no suffix, and the text ends with EOF', async t => {
  const text = await renderMetrics([filled()], 'openmetrics')
  t.match(text, '# HELP requests Requests.\n# TYPE requests counter\nrequests_total{model="a"} 2\n')
  t.match(text, /\n# EOF\n$/)
  t.match(contentType('openmetrics'), /^application\/openmetrics-text/)
})

t.test('a metric with many series is written with one help line and all series', async t => {
  const registry = new Registry()
  const gauge = new Gauge({ name: 'running', help: 'Running.', labelNames: ['n'], registers: [registry] })
  for (let n = 0; n < 1201; n++) gauge.set({ n }, n)
  const lines = (await renderMetrics([registry, new Registry()], 'text')).trimEnd().split('\n')
  t.equal(lines.filter(line => line.startsWith('#')).length, 2)
  t.strictSame(lines.slice(2).map(line => Number(line.split(' ')[1])), Array.from({ length: 1201 }, (_, n) => n))
})
