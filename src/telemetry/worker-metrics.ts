import { AggregatorRegistry } from 'prom-client'
import type { Registry } from 'prom-client'
import { idOf } from '../limits/types.ts'
import { BUDGET_SPENT } from './gauges.ts'

/** A metric with its values, as a registry hands it out. Plain data. */
export type MetricObject = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number]

/** What a worker reports. Plain data. */
export interface MetricsReport {
  /** What was counted since its last report. */
  readonly counted: MetricObject[]
  /** Its current state. */
  readonly current: MetricObject[]
}

/** Reports that are kept before they are summed: summing takes time for each series. */
const MAX_UNSUMMED = 16

/**
 * Merges the metrics of several workers. A worker reports what it counted since its last report, so the sums include
 * workers that have ended, and never decrease.
 */
export class WorkerMetrics {
  #counted: MetricObject[][] = []
  readonly #current = new Map<number, MetricObject[]>()

  add(worker: number, { counted, current }: MetricsReport): void {
    this.#counted.push(counted)
    this.#current.set(worker, current)
    if (this.#counted.length > MAX_UNSUMMED) this.#sum()
  }

  /** The worker has ended: its state no longer counts. */
  remove(worker: number): void {
    this.#current.delete(worker)
  }

  /** @param spend of the keys and groups that have a budget, by `idOf`, 1e-12 USD: workers do not count it */
  registries(spend: ReadonlyMap<string, bigint>): Registry[] {
    this.#sum()
    return [aggregate(this.#counted), aggregate([...this.#current.values()].map(current => withSpend(current, spend)))]
  }

  #sum(): void {
    const summed = aggregate(this.#counted).getMetricsAsArray() as unknown as { get(): MetricObject }[]
    this.#counted = [summed.map(metric => metric.get())]
  }
}

function withSpend(metrics: MetricObject[], spend: ReadonlyMap<string, bigint>): MetricObject[] {
  return metrics.map(metric => {
    const isGroup = metric.name === BUDGET_SPENT.group
    if (!isGroup && metric.name !== BUDGET_SPENT.key) return metric
    const spentBy = (name: string) => Number(spend.get(idOf({ name, ...isGroup && { isGroup } })) ?? 0n) / 1e12
    return { ...metric, values: metric.values.map(entry => ({ ...entry, value: spentBy(String(entry.labels[isGroup ? 'group' : 'key'])) })) }
  })
}

function aggregate(reports: MetricObject[][]): Registry {
  return AggregatorRegistry.aggregate(reports)
}
