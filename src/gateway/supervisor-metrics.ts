import type { TelemetryConfig } from '../config/types.ts'
import type { GatewayParts } from '../pipeline/parts/gateway.ts'
import type { Limiter } from '../limits/types.ts'
import type { MetricsOutput } from '../telemetry/telemetry.ts'
import type { MetricsReport, WorkerMetrics } from '../telemetry/worker-metrics.ts'

/** ms between two reports of each worker. A killed worker loses its counts since its last report. */
const REPORT_INTERVAL = 1_000
/** Maximum ms that a scrape waits for reports, because a worker may hang. */
const SCRAPE_TIMEOUT = 2_000

export interface SupervisorMetricsOptions extends Pick<GatewayParts, 'log' | 'version'> {
  readonly config: TelemetryConfig
  /** The limiter that counts the budgets of all workers. */
  readonly limiter: Pick<Limiter, 'budgetSpend'>
  askWorkers(): void
  workers(): readonly number[]
}

/** Combines the metrics of all workers. */
export type SupervisorMetrics = Pick<CollectedMetrics, 'open' | 'add' | 'workerEnded' | 'close'>

export function superviseMetrics(options: SupervisorMetricsOptions): SupervisorMetrics {
  const { prometheus, otlp } = options.config
  return prometheus !== null || otlp?.metrics === true ? new CollectedMetrics(options) : NO_METRICS
}

const NO_METRICS: SupervisorMetrics = { open: () => Promise.resolve(null), add() {}, workerEnded() {}, close: () => Promise.resolve() }

class CollectedMetrics {
  readonly #options: SupervisorMetricsOptions
  /** null until the libraries are loaded, when the workers listen. Earlier reports are queued. */
  #metrics: WorkerMetrics | null = null
  #early: (readonly [worker: number, report: MetricsReport])[] = []
  #output: MetricsOutput | null = null
  #timer: NodeJS.Timeout | null = null
  /** Scrapes that wait for reports of workers. */
  readonly #waiting = new Set<{ readonly missing: Set<number>, readonly done: () => void }>()

  constructor(options: SupervisorMetricsOptions) {
    this.#options = options
  }

  /** @returns the URL for Prometheus; null = none */
  async open(): Promise<string | null> {
    const [{ WorkerMetrics }, { openMetricsOutput }] = await Promise.all([
      import('../telemetry/worker-metrics.ts'), import('../telemetry/telemetry.ts'),
    ])
    const metrics = new WorkerMetrics()
    this.#metrics = metrics
    for (const [worker, report] of this.#early.splice(0)) metrics.add(worker, report)
    this.#timer = setInterval(() => this.#options.askWorkers(), REPORT_INTERVAL)
    this.#output = await openMetricsOutput(this.#options, async () => {
      await this.#collect()
      return metrics.registries(this.#options.limiter.budgetSpend())
    })
    return this.#output.url
  }

  add(worker: number, report: MetricsReport): void {
    if (this.#metrics === null) this.#early.push([worker, report])
    else this.#metrics.add(worker, report)
    this.#arrived(worker)
  }

  workerEnded(worker: number): void {
    this.#metrics?.remove(worker)
    this.#arrived(worker)
  }

  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#output?.close()
  }

  /** Resolves when every worker has reported, or at the timeout. */
  #collect(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = { missing: new Set(this.#options.workers()), done: resolve }
    this.#waiting.add(waiting)
    const timer = setTimeout(resolve, SCRAPE_TIMEOUT)
    this.#options.askWorkers()
    return promise.finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(waiting)
    })
  }

  #arrived(worker: number): void {
    for (const { missing, done } of this.#waiting) {
      missing.delete(worker)
      if (missing.size === 0) done()
    }
  }
}
