import { Registry, type RegistryContentType } from 'prom-client'
import { nextTurn } from '../base/next-turn.ts'

/** Number of lines to write in one turn of the event loop, so that a large scrape does not delay requests. */
const LINES_PER_TURN = 500

export type MetricsFormat = 'text' | 'openmetrics'

const CONTENT_TYPES: Readonly<Record<MetricsFormat, RegistryContentType>> = {
  text: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
}

export function contentType(format: MetricsFormat): string {
  return CONTENT_TYPES[format]
}

/** Writes the metrics in Prometheus' text format, in several turns of the event loop. */
export async function renderMetrics(registries: readonly Registry[], format: MetricsFormat): Promise<string> {
  const writer = new Registry()
  writer.setContentType(CONTENT_TYPES[format] as typeof Registry.PROMETHEUS_CONTENT_TYPE)
  const parts: string[] = []
  for (const metric of registries.flatMap(registry => registry.getMetricsAsArray())) {
    for await (const part of metricParts(metric as unknown as CollectedMetric, writer as unknown as LineWriter, format)) {
      parts.push(part)
      await nextTurn()
    }
  }
  const end = format === 'openmetrics' ? '# EOF\n' : ''
  return `${parts.join('\n')}\n${end}`
}

/** A metric, with the method `getForPromString` that prom-client's types lack. */
interface CollectedMetric {
  readonly type: string
  get(): Promise<MetricData>
  /** Only prom-client's histograms have this method. It is cheaper than `get`, because the lines of a series share one object of labels. */
  getForPromString?(): Promise<MetricData>
}

/** A registry, with the method `getMetricsAsString` that prom-client's types lack. */
interface LineWriter {
  getMetricsAsString(metric: { get(): MetricData }): Promise<string>
}

type MetricData = { readonly name: string, readonly values: readonly unknown[] }

async function* metricParts(metric: CollectedMetric, writer: LineWriter, format: MetricsFormat): AsyncGenerator<string> {
  const data = await (metric.getForPromString?.() ?? metric.get())
  // In OpenMetrics, the name of a family does not have the suffix of its lines.
  const name = format === 'openmetrics' && metric.type === 'counter' ? data.name.replace(/_total$/, '') : data.name
  for (let at = 0; at === 0 || at < data.values.length; at += LINES_PER_TURN) {
    const slice = { ...data, type: metric.type, name, values: data.values.slice(at, at + LINES_PER_TURN) }
    const text = await writer.getMetricsAsString({ get: () => slice })
    // Remove HELP and TYPE, the first two lines, from all slices except the first.
    yield at === 0 ? text : text.split('\n').slice(2).join('\n')
  }
}
