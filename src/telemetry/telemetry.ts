import { Gauge, type Registry } from 'prom-client'
import type { Logger } from 'pino'
import type { Route, TelemetryConfig } from '../config/types.ts'
import type { Conventions } from './gen-ai-metrics.ts'
import { createGauges, type GaugeSource } from './gauges.ts'
import { PrometheusProducer } from './metric-producer.ts'
import { serveMetrics } from './metrics-server.ts'
import { Metrics } from './metrics.ts'
import { CallerLabels } from './caller-labels.ts'
import { ModelLabels } from './model-labels.ts'
import { openMetricExport, openTraceExport, type TraceExport } from './otlp.ts'
import { renderMetrics } from './render.ts'
import type { Settlement } from './settlement.ts'
import type { RequestTracer } from './tracing.ts'
import type { MetricsReport } from './worker-metrics.ts'

export interface TelemetryOptions {
  readonly config: TelemetryConfig
  readonly version: string
  readonly log: Logger
  /** The number of this process, and the number of processes; null = there is one process. */
  readonly worker: { readonly number: number, readonly count: number } | null
}

export class Telemetry {
  /** true if traces contain prompts and responses. */
  readonly sendsContent: boolean
  readonly #conventions: Conventions
  #metrics: Metrics | null
  readonly #traces: TraceExport | null
  readonly #version: string
  #gauges: Registry | null = null

  constructor({ config, version, worker }: TelemetryOptions, traces: TraceExport | null) {
    const countsMetrics = config.prometheus !== null || config.otlp?.metrics === true
    this.sendsContent = config.otlp?.content ?? false
    this.#metrics = countsMetrics ? new Metrics(config.conventions, new ModelLabels(worker?.count), new CallerLabels(worker?.count)) : null
    this.#conventions = config.conventions
    this.#traces = traces
    this.#version = version
  }

  /** Traces requests; null = requests are not traced. */
  get tracer(): RequestTracer | null {
    return this.#traces?.tracer ?? null
  }

  settled(settlement: Settlement): void {
    this.#metrics?.record(settlement)
  }

  checkMatched(check: string, action: string, count: number): void {
    this.#metrics?.recordCheck(check, action, count)
  }

  /** @param ms from the call to its outcome */
  hookCalled(hook: string, on: string, outcome: string, ms: number): void {
    this.#metrics?.recordHook(hook, on, outcome, ms)
  }

  /** @param issuers names of the issuers of callers */
  configure(routes: readonly Route[], issuers: readonly string[]): void {
    this.#metrics?.models.configure(routes)
    this.#metrics?.callers.configure(issuers)
  }

  watch(source: GaugeSource): void {
    if (this.#metrics === null) return
    const { models } = this.#metrics
    this.#gauges = createGauges({
      ...source,
      circuits: () => source.circuits().map(circuit => ({ ...circuit, model: models.knownLabel(circuit.model) })),
    }, this.#version)
    if (this.#traces !== null) this.#gauges.registerMetric(droppedGauge(this.#traces))
  }

  get registries(): readonly Registry[] {
    return this.#metrics === null || this.#gauges === null ? [] : [this.#metrics.registry, this.#gauges]
  }

  /** The counts since the last report, and the current state. */
  async report(): Promise<MetricsReport> {
    const metrics = this.#metrics
    if (metrics === null || this.#gauges === null) return { counted: [], current: [] }
    // Later counts belong to the next report.
    this.#metrics = new Metrics(this.#conventions, metrics.models, metrics.callers)
    return { counted: await metrics.registry.getMetricsAsJSON(), current: await this.#gauges.getMetricsAsJSON() }
  }

  close(): Promise<void> {
    return this.#traces?.close() ?? Promise.resolve()
  }
}

/** @returns null = the configuration has neither metrics nor traces */
export async function openTelemetry(options: TelemetryOptions): Promise<Telemetry | null> {
  const { prometheus, otlp } = options.config
  if (prometheus === null && otlp === null) return null
  const number = options.worker?.number ?? null
  const traces = otlp?.traces ? await openTraceExport({ ...options, config: otlp, worker: number }) : null
  return new Telemetry(options, traces)
}

export interface MetricsOutput {
  /** URL for Prometheus; null = metrics are not served. */
  readonly url: string | null
  close(): Promise<void>
}

/** @param collect returns all metrics, of one process or of all workers @throws the system's error if the address cannot be used */
export async function openMetricsOutput(
  { config, version, log }: Omit<TelemetryOptions, 'worker'>, collect: () => Promise<readonly Registry[]>,
): Promise<MetricsOutput> {
  const { prometheus, otlp } = config
  const server = prometheus && await serveMetrics(prometheus.listen, async format => renderMetrics(await collect(), format))
  const producer = new PrometheusProducer(async () => {
    const metrics = await Promise.all((await collect()).map(registry => registry.getMetricsAsJSON()))
    return metrics.flat()
  }, version)
  const pushed = otlp?.metrics ? await openMetricExport({ config: otlp, version, log, worker: null }, producer) : null
  return {
    url: server?.url ?? null,
    close: async () => {
      await Promise.all([server?.close(), pushed?.close()])
    },
  }
}

function droppedGauge(traces: TraceExport): Gauge {
  return new Gauge({
    name: 'gateway_telemetry_dropped_spans', help: 'Spans that could not be sent to the collector since the start.',
    registers: [],
    collect() {
      this.set(traces.dropped)
    },
  })
}
