import { ValueType, type Attributes, type HrTime } from '@opentelemetry/api'
import { millisToHrTime } from '@opentelemetry/core'
import { emptyResource } from '@opentelemetry/resources'
import { AggregationTemporality, DataPointType } from '@opentelemetry/sdk-metrics'
import type { CollectionResult, DataPoint, Histogram, MetricData, MetricProducer } from '@opentelemetry/sdk-metrics'
import type { MetricObject } from './worker-metrics.ts'

type Values = MetricObject['values']
type SeriesLabels = Readonly<Record<string, string | number>>

const UNITS: readonly (readonly [suffix: string, unit: string])[] = [
  ['_seconds', 's'], ['_bytes', 'By'], ['_usd', '{USD}'], ['_usd_total', '{USD}'],
]

/** Converts the metrics for Prometheus to metrics for OpenTelemetry. */
export class PrometheusProducer implements MetricProducer {
  readonly #collect: () => Promise<readonly MetricObject[]>
  readonly #version: string
  readonly #startTime: HrTime = millisToHrTime(performance.timeOrigin)

  constructor(collect: () => Promise<readonly MetricObject[]>, version: string) {
    this.#collect = collect
    this.#version = version
  }

  async collect(): Promise<CollectionResult> {
    const endTime = millisToHrTime(Date.now())
    const metrics = (await this.#collect()).map(metric => this.#metricData(metric, endTime))
    return {
      resourceMetrics: { resource: emptyResource(), scopeMetrics: [{ scope: { name: 'model-gateway', version: this.#version }, metrics }] },
      errors: [],
    }
  }

  #metricData(metric: MetricObject, endTime: HrTime): MetricData {
    const type = String(metric.type)
    const common = {
      descriptor: { name: conventionalName(metric.name), description: metric.help, unit: unitOf(metric.name), valueType: ValueType.DOUBLE },
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
    }
    const point = <T>(labels: SeriesLabels, value: T): DataPoint<T> => ({
      startTime: this.#startTime, endTime, attributes: attributesOf(labels), value,
    })
    if (type === 'histogram') {
      const dataPoints = histogramsOf(metric.values).map(({ labels, histogram }) => point(labels, histogram))
      return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints }
    }
    const dataPoints = metric.values.map(({ labels, value }) => point(labels as Record<string, string>, value))
    return type === 'counter'
      ? { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
      : { ...common, dataPointType: DataPointType.GAUGE, dataPoints }
  }
}

/** Creates one histogram for each series. In Prometheus, a bucket includes all lower buckets; in OpenTelemetry it does not. */
function histogramsOf(values: Values): { readonly labels: SeriesLabels, readonly histogram: Histogram }[] {
  const series = new Map<string, { labels: Record<string, string | number>, bounds: number[], counts: number[], sum: number, count: number }>()
  for (const entry of values) {
    const { labels, value } = entry
    const metricName = 'metricName' in entry ? String(entry.metricName) : ''
    const { le, ...own } = labels as Record<string, string | number>
    const id = JSON.stringify(own)
    const found = series.get(id) ?? { labels: own, bounds: [], counts: [], sum: 0, count: 0 }
    series.set(id, found)
    if (metricName.endsWith('_sum')) found.sum = value
    else if (metricName.endsWith('_count')) found.count = value
    else if (typeof le === 'number') {
      found.bounds.push(le)
      found.counts.push(value)
    }
  }
  return [...series.values()].map(({ labels, bounds, counts, sum, count }) => {
    const cumulative = [...counts, count]
    const single = cumulative.map((total, at) => total - (cumulative[at - 1] ?? 0))
    return { labels, histogram: { buckets: { boundaries: bounds, counts: single }, sum, count } }
  })
}

/** Conventional names by the name in Prometheus without its unit: `gen_ai_client_token_usage`. */
const CONVENTIONAL_NAMES: ReadonlyMap<string, string> = new Map([
  'gen_ai.client.operation.duration', 'gen_ai.client.token.usage', 'gen_ai.server.time_to_first_token',
  'gen_ai.server.time_per_output_token', 'gen_ai.client.inference.duration', 'gen_ai.client.inference.time_to_first_chunk',
  'gen_ai.client.inference.operation.input_tokens', 'gen_ai.client.inference.operation.output_tokens',
  'gen_ai.client.inference.usage.input_tokens', 'gen_ai.client.inference.usage.output_tokens',
  'gen_ai.client.inference.usage.cache_read.input_tokens', 'gen_ai.client.inference.usage.cache_write.input_tokens',
  'gen_ai.client.inference.usage.reasoning.output_tokens',
].map(name => [name.replaceAll('.', '_'), name]))

function conventionalName(name: string): string {
  return CONVENTIONAL_NAMES.get(name.replace(/_(seconds|total)$/, '')) ?? name
}

const ATTRIBUTES: ReadonlyMap<string, string> = new Map(Object.entries({
  gen_ai_operation_name: 'gen_ai.operation.name',
  gen_ai_provider_name: 'gen_ai.provider.name',
  gen_ai_request_model: 'gen_ai.request.model',
  gen_ai_token_type: 'gen_ai.token.type',
  server_address: 'server.address',
  error_type: 'error.type',
}))

function attributesOf(labels: SeriesLabels): Attributes {
  const present = Object.entries(labels).filter(([name, value]) => value !== '' || !ATTRIBUTES.has(name))
  return Object.fromEntries(present.map(([name, value]) => [ATTRIBUTES.get(name) ?? name, value]))
}

function unitOf(name: string): string {
  if (/tokens?(_total|_usage)?$/.test(name)) return '{token}'
  return UNITS.find(([suffix]) => name.endsWith(suffix))?.[1] ?? '1'
}
