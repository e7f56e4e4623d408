import { Registry } from 'prom-client'
import t from 'tap'
import { CounterFamily, HistogramFamily } from '../../src/telemetry/series.ts'

const linesOf = async (registry: Registry) => (await registry.metrics()).split('\n').filter(line => line !== '' && !line.startsWith('#'))

t.test('a counter is written only after its first count', async t => {
  const registry = new Registry()
  const family = new CounterFamily('requests_total', 'Requests.', registry)
  const one = family.series({ model: 'a', status: '200' })
  t.strictSame(await linesOf(registry), [])
  one.value += 2
  t.equal(family.series({ model: 'a', status: '200' }), one)
  family.series({ model: 'b', status: '200' }).value++
  t.strictSame(await linesOf(registry), ['requests_total{model="a",status="200"} 2', 'requests_total{model="b",status="200"} 1'])
  t.match(await registry.metrics(), '# HELP requests_total Requests.\n# TYPE requests_total counter')
})

t.test('a bucket of a histogram includes all lower buckets', async t => {
  const registry = new Registry()
  const series = new HistogramFamily('seconds', 'Seconds.', registry, [0.1, 1]).series({ model: 'a' })
  t.strictSame(await linesOf(registry), [])
  for (const value of [0.05, 0.1, 0.5, 1, 7, null]) series.observe(value)
  t.strictSame(await linesOf(registry), ['seconds_bucket{model="a",le="0.1"} 2', 'seconds_bucket{model="a",le="1"} 4', 'seconds_bucket{model="a",le="+Inf"} 5', 'seconds_sum{model="a"} 8.65', 'seconds_count{model="a"} 5'])
})

t.test('a histogram records a value of 0', async t => {
  const registry = new Registry()
  new HistogramFamily('seconds', 'Seconds.', registry, [1]).series({}).observe(0)
  t.strictSame(await linesOf(registry), ['seconds_bucket{le="1"} 1', 'seconds_bucket{le="+Inf"} 1', 'seconds_sum 0', 'seconds_count 1'])
})
