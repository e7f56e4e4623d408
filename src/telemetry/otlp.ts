import { diag } from '@opentelemetry/api'
import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import { detectResources, envDetector, resourceFromAttributes, type Resource } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader, type MetricProducer, type PushMetricExporter } from '@opentelemetry/sdk-metrics'
import { AlwaysOnSampler, BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace'
import type { ReadableSpan, Span, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import { proxyFor, proxyHref, type ProxyRules } from '../base/outgoing-proxy.ts'
import type { OtlpConfig } from '../config/types.ts'
import { agentBy } from '../proxy/upstream/fetch-route.ts'
import { PresetIds, RequestTracer, SpanWriter } from './tracing.ts'

/** Maximum number of waiting spans, which is about 10 MB. Further spans are dropped and counted. */
const MAX_QUEUED_SPANS = 8192
const MAX_BATCH = 512
/** ms */
const EXPORT_TIMEOUT = 10_000
const SHUTDOWN_TIMEOUT = 2_000
const BATCH_DELAY = 1_000
const WARNING_INTERVAL = 60_000

export interface OtlpOptions {
  readonly config: OtlpConfig
  readonly version: string
  readonly log: Logger
  /** The number of this process, if there are several; null = there is one process. */
  readonly worker: number | null
}

export interface OtlpExport {
  /** Number of items that were not sent since the start, because the collector was unreachable, slow, or refused them. */
  readonly dropped: number
  close(): Promise<void>
}

export interface TraceExport extends OtlpExport {
  readonly tracer: RequestTracer
}

export async function openTraceExport(options: OtlpOptions): Promise<TraceExport> {
  const { config } = options
  const failures = new ExportFailures(options.log, 'spans')
  const exporter = new CountingExporter(await createTraceExporter(config), failures)
  const ids = new PresetIds()
  const provider = new TracerProvider({
    resource: resourceOf(options),
    // Sample all, because `RequestTracer` has already decided: only sampled traces arrive here.
    sampler: new AlwaysOnSampler(),
    idGenerator: ids,
    spanLimits: { attributeCountLimit: 64 },
    spanProcessors: [new BoundedProcessor(exporter, failures)],
  })
  return {
    tracer: new RequestTracer(
      new SpanWriter(provider.getTracer('model-gateway', options.version), ids),
      new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(config.sample) }),
    ),
    get dropped() {
      return failures.dropped
    },
    close: () => withinTimeout(provider.shutdown()),
  }
}

export async function openMetricExport(options: OtlpOptions, producer: MetricProducer): Promise<OtlpExport> {
  const failures = new ExportFailures(options.log, 'metrics')
  const provider = new MeterProvider({
    resource: resourceOf(options),
    readers: [new PeriodicExportingMetricReader({
      exporter: countingMetricExporter(await createMetricExporter(options.config), failures),
      exportIntervalMillis: options.config.interval,
      exportTimeoutMillis: Math.min(EXPORT_TIMEOUT, options.config.interval),
      metricProducers: [producer],
    })],
  })
  return {
    get dropped() {
      return failures.dropped
    },
    close: () => withinTimeout(provider.shutdown()),
  }
}

function resourceOf({ version, worker }: OtlpOptions): Resource {
  return resourceFromAttributes({
    'service.name': 'model-gateway', 'service.version': version, ...worker !== null && { 'gateway.worker': worker },
  }).merge(detectResources({ detectors: [envDetector] }))
}

function httpOptions({ endpoint, headers, proxy }: OtlpConfig, path: string) {
  return {
    ...proxy !== null && { httpAgentOptions: (protocol: string) => agentBy(proxy, protocol) },
    ...endpoint !== null && { url: `${endpoint}/${path}` },
    ...Object.keys(headers).length > 0 && { headers: { ...headers } },
    timeoutMillis: EXPORT_TIMEOUT,
  }
}

async function grpcOptions({ endpoint, headers, proxy }: OtlpConfig) {
  setGrpcProxy(proxy, endpoint)
  const { Metadata } = await import('@grpc/grpc-js')
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  return { ...endpoint !== null && { url: endpoint }, metadata, timeoutMillis: EXPORT_TIMEOUT }
}

/**
 * The library reads its proxy from the environment only, and supports http proxies only. For an endpoint of the environment, the
 * environment stays as it is.
 */
function setGrpcProxy(rules: ProxyRules | null, endpoint: string | null): void {
  const collector = endpoint === null ? null : URL.parse(endpoint)
  if (collector === null) return
  const proxy = proxyFor(rules, collector)
  // oxlint-disable-next-line no-restricted-properties -- the library has no other setting
  const { env } = process
  if (proxy !== null) env.grpc_proxy = proxyHref(proxy)
  // A name that no collector has keeps the library from reading NO_PROXY, which the rules have applied.
  env.no_grpc_proxy = proxy === null ? collector.hostname : 'proxy.invalid'
}

/** Loads only the exporter of the configured protocol, because all three need several MB. */
async function createTraceExporter(config: OtlpConfig): Promise<SpanExporter> {
  if (config.protocol === 'grpc') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-grpc')
    return new OTLPTraceExporter(await grpcOptions(config))
  }
  const { OTLPTraceExporter } = config.protocol === 'http/json'
    ? await import('@opentelemetry/exporter-trace-otlp-http')
    : await import('@opentelemetry/exporter-trace-otlp-proto')
  return new OTLPTraceExporter(httpOptions(config, 'v1/traces'))
}

async function createMetricExporter(config: OtlpConfig): Promise<PushMetricExporter> {
  if (config.protocol === 'grpc') {
    const { OTLPMetricExporter } = await import('@opentelemetry/exporter-metrics-otlp-grpc')
    return new OTLPMetricExporter(await grpcOptions(config))
  }
  const { OTLPMetricExporter } = config.protocol === 'http/json'
    ? await import('@opentelemetry/exporter-metrics-otlp-http')
    : await import('@opentelemetry/exporter-metrics-otlp-proto')
  return new OTLPMetricExporter(httpOptions(config, 'v1/metrics'))
}

/** Counts items that were not sent, and logs a warning at most once a minute. */
class ExportFailures {
  dropped = 0
  readonly #log: Logger
  readonly #what: string
  #warnedAt = -Infinity

  constructor(log: Logger, what: string) {
    this.#log = log
    this.#what = what
    diag.setLogger({ error: ignore, warn: ignore, info: ignore, debug: ignore, verbose: ignore })
  }

  add(count: number, error: Error | null): void {
    this.dropped += count
    const now = performance.now()
    if (now - this.#warnedAt < WARNING_INTERVAL) return
    this.#warnedAt = now
    const cause = error?.message.slice(0, 500)
    this.#log.warn({ dropped: this.dropped, cause }, `telemetry: ${this.#what} could not be sent to the collector`)
  }
}

function ignore(): void {}

class BoundedProcessor implements SpanProcessor {
  readonly #batches: BatchSpanProcessor
  readonly #exporter: CountingExporter
  readonly #failures: ExportFailures

  constructor(exporter: CountingExporter, failures: ExportFailures) {
    this.#exporter = exporter
    this.#failures = failures
    this.#batches = new BatchSpanProcessor({
      exporter, maxQueueSize: MAX_QUEUED_SPANS, maxExportBatchSize: MAX_BATCH,
      scheduledDelayMillis: BATCH_DELAY, exportTimeoutMillis: EXPORT_TIMEOUT + 1_000,
    })
  }

  onStart(_span: Span): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#exporter.queued >= MAX_QUEUED_SPANS) return this.#failures.add(1, null)
    this.#exporter.queued++
    this.#batches.onEnd(span)
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush()
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown()
  }
}

class CountingExporter implements SpanExporter {
  queued = 0
  readonly #exporter: SpanExporter
  readonly #failures: ExportFailures

  constructor(exporter: SpanExporter, failures: ExportFailures) {
    this.#exporter = exporter
    this.#failures = failures
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, result => {
      this.queued -= spans.length
      if (result.code !== ExportResultCode.SUCCESS) this.#failures.add(spans.length, result.error ?? null)
      done(result)
    })
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }
}

function countingMetricExporter(exporter: PushMetricExporter, failures: ExportFailures): PushMetricExporter {
  return {
    export: (metrics, done) => exporter.export(metrics, result => {
      if (result.code !== ExportResultCode.SUCCESS) failures.add(1, result.error ?? null)
      done(result)
    }),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  }
}

/** Limits the time, because a collector that hangs must not delay the end of the process. */
async function withinTimeout(closing: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, SHUTDOWN_TIMEOUT)
  // Ignore the error, because `ExportFailures` has counted and logged the items that were not sent.
  await Promise.race([closing.catch(ignore), promise])
  clearTimeout(timer)
}
