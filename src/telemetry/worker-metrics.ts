import { AggregatorRegistry, type Registry } from 'prom-client'
import { idOf } from '../limits/types.ts'
import { BUDGET_SPENT } from './gauges.ts'

/** A metric of a registry with its values, as an object that can be sent between processes. */
export type MetricObject = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number]

export interface MetricsReport {
  /** The counts since the last report of the worker. */
  readonly counted: MetricObject[]
  readonly current: MetricObject[]
}

/** Number of reports that are kept before they are summed, because a sum takes time for each series. */
const MAX_UNSUMMED = 16

/**
 * Sums the reports of workers. The sums never decrease: they include workers that have ended, because each report has only the counts since
 * the last report.
 */
export class WorkerMetrics {
  #counted: MetricObject[][] = []
  readonly #current = new Map<number, MetricObject[]>()

  add(worker: number, { counted, current }: MetricsReport): void {
    this.#counted.push(counted)
    this.#current.set(worker, current)
    if (this.#counted.length > MAX_UNSUMMED) this.#sum()
  }

  remove(worker: number): void {
    this.#current.delete(worker)
  }

  /** @param spend in 1e-12 USD, of keys and groups with a budget, by `idOf`; workers do not count it */
  registries(spend: ReadonlyMap<string, bigint>): Registry[] {
    this.#sum()
    const current = [...this.#current.values()].map(metrics => withSpend(metrics, spend))
    return [AggregatorRegistry.aggregate(this.#counted), AggregatorRegistry.aggregate(current)]
  }

  #sum(): void {
    const summed = AggregatorRegistry.aggregate(this.#counted).getMetricsAsArray() as unknown as { get(): MetricObject }[]
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
