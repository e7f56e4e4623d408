import type { Metric, Registry } from 'prom-client'

type Labels = Readonly<Record<string, string>>

interface Line {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

export class CounterSeries {
  readonly labels: Labels
  value = 0

  constructor(labels: Labels) {
    this.labels = labels
  }
}

export class HistogramSeries {
  readonly labels: Labels
  /** Number of values in each bucket, not including lower buckets. The last bucket has no upper bound. */
  readonly counts: Float64Array
  sum = 0
  readonly #bounds: readonly number[]

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels
    this.counts = new Float64Array(bounds.length + 1)
    this.#bounds = bounds
  }

  observe(value: number | null): void {
    if (value === null) return
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
    this.counts[bucket] = (this.counts[bucket] as number) + 1
    this.sum += value
  }
}

/**
 * A metric that looks up its series once. prom-client joins all labels at each call, which takes 8 % of the CPU of a request
 * (bench/telemetry.ts).
 */
abstract class Family<S extends { readonly labels: Labels }> {
  readonly name: string
  readonly help: string
  abstract readonly type: 'counter' | 'histogram'
  readonly #series = new Map<string, S>()

  constructor(name: string, help: string, registry: Registry) {
    this.name = name
    this.help = help
    // A cast is needed: a registry uses only `name`, `type` and `get()`, but its type Metric lists only prom-client's own classes.
    registry.registerMetric(this as unknown as Metric)
  }

  /** @param labels must always have the same order */
  series(labels: Labels): S {
    const id = Object.values(labels).join('\n')
    const known = this.#series.get(id)
    if (known !== undefined) return known
    const series = this.create(labels)
    this.#series.set(id, series)
    return series
  }

  get(): Promise<unknown> {
    const { name, help, type } = this
    const values = [...this.#series.values()].flatMap(series => this.lines(series))
    return Promise.resolve({ name, help, type, values, aggregator: 'sum' })
  }

  protected abstract create(labels: Labels): S
  protected abstract lines(series: S): Line[]
}

export class CounterFamily extends Family<CounterSeries> {
  readonly type = 'counter'

  protected create(labels: Labels): CounterSeries {
    return new CounterSeries(labels)
  }

  protected lines({ labels, value }: CounterSeries): Line[] {
    return value === 0 ? [] : [{ labels, value }]
  }
}

export class HistogramFamily extends Family<HistogramSeries> {
  readonly type = 'histogram'
  readonly #bounds: readonly number[]

  /** @param bounds upper bounds of the buckets, in ascending order */
  constructor(name: string, help: string, registry: Registry, bounds: readonly number[]) {
    super(name, help, registry)
    this.#bounds = bounds
  }

  protected create(labels: Labels): HistogramSeries {
    return new HistogramSeries(labels, this.#bounds)
  }

  /** The lines of a series. In Prometheus, a bucket includes all lower buckets. */
  protected lines({ labels, counts, sum }: HistogramSeries): Line[] {
    let count = 0
    const buckets = Array.from(counts, (values, at) => {
      count += values
      return { metricName: `${this.name}_bucket`, labels: { ...labels, le: this.#bounds[at] ?? '+Inf' }, value: count }
    })
    if (count === 0) return []
    return [...buckets, { metricName: `${this.name}_sum`, labels, value: sum }, { metricName: `${this.name}_count`, labels, value: count }]
  }
}
