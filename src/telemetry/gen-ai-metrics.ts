import { Counter, Histogram } from 'prom-client'
import type { Registry } from 'prom-client'
import type { Usage } from '../protocols/shared/usage.ts'
import type { Settlement } from './settlement.ts'

/** `v1.41` has the names that today's dashboards read, `latest` those of the conventions' own repository. */
export type Conventions = 'v1.41' | 'latest'

/** Metrics under the names of OpenTelemetry's GenAI conventions. */
export interface GenAiMetrics {
  record(settlement: Settlement, call: Call, model: string): void
}

type Call = NonNullable<Settlement['call']>
type Labels = Record<string, string>

/** Bucket boundaries of the conventions. Source: opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics. */
const DURATION_BUCKETS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const TOKEN_BUCKETS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
const FIRST_TOKEN_BUCKETS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const PER_TOKEN_BUCKETS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]

const CALL_LABELS = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model', 'server_address']

export function genAiMetrics(conventions: Conventions, registry: Registry): GenAiMetrics {
  return conventions === 'latest' ? new LatestMetrics(registry) : new CommonMetrics(registry)
}

/** Seconds of the attempt that responded: the earlier ones were calls of their own, which failed. */
function durationOf({ row: { attempts } }: Settlement): number | null {
  const last = attempts.at(-1)
  return last === undefined ? null : last.ms / 1000
}

/** Seconds from the start of the last attempt to its first byte; null = no stream. */
function firstTokenOf({ row: { attempts, firstByteMs }, isStream }: Settlement): number | null {
  const startedMs = attempts.at(-1)?.atMs
  if (!isStream || firstByteMs === null || startedMs === undefined || firstByteMs < startedMs) return null
  return (firstByteMs - startedMs) / 1000
}

/** Seconds of each output token behind the first one. */
function perTokenOf({ row: { firstByteMs, durationMs, usage: { outputTokens } }, isStream }: Settlement): number | null {
  if (!isStream || firstByteMs === null || durationMs === null || outputTokens === null || outputTokens < 2) return null
  return (durationMs - firstByteMs) / 1000 / (outputTokens - 1)
}

function callLabels({ operation, provider, serverAddress }: Call, model: string): Labels {
  return {
    gen_ai_operation_name: operation,
    gen_ai_provider_name: provider,
    gen_ai_request_model: model,
    server_address: serverAddress ?? '',
  }
}

class CommonMetrics implements GenAiMetrics {
  readonly #duration: Histogram
  readonly #tokens: Histogram
  readonly #firstToken: Histogram
  readonly #perToken: Histogram

  constructor(registry: Registry) {
    this.#duration = histogram(registry, 'gen_ai_client_operation_duration_seconds', 'GenAI operation duration.', [...CALL_LABELS, 'error_type'], DURATION_BUCKETS)
    this.#tokens = histogram(registry, 'gen_ai_client_token_usage', 'Number of input and output tokens used.', [...CALL_LABELS, 'gen_ai_token_type'], TOKEN_BUCKETS)
    this.#firstToken = histogram(registry, 'gen_ai_server_time_to_first_token_seconds', 'Time to generate the first token of a successful response.', CALL_LABELS, FIRST_TOKEN_BUCKETS)
    this.#perToken = histogram(registry, 'gen_ai_server_time_per_output_token_seconds', 'Time per output token after the first token of a successful response.', CALL_LABELS, PER_TOKEN_BUCKETS)
  }

  record(settlement: Settlement, call: Call, model: string): void {
    const labels = callLabels(call, model)
    const { usage: { inputTokens, outputTokens } } = settlement.row
    const duration = durationOf(settlement)
    if (duration !== null) this.#duration.observe({ ...labels, error_type: errorTypeOf(settlement) ?? '' }, duration)
    if (inputTokens !== null) this.#tokens.observe({ ...labels, gen_ai_token_type: 'input' }, inputTokens)
    if (outputTokens !== null) this.#tokens.observe({ ...labels, gen_ai_token_type: 'output' }, outputTokens)
    if (settlement.row.end !== 'complete') return
    observe(this.#firstToken, labels, firstTokenOf(settlement))
    observe(this.#perToken, labels, perTokenOf(settlement))
  }
}

class LatestMetrics implements GenAiMetrics {
  readonly #duration: Histogram
  readonly #firstChunk: Histogram
  readonly #inputTokens: Histogram
  readonly #outputTokens: Histogram
  readonly #usage: readonly (readonly [counter: Counter, tokens: (usage: Usage) => number | null])[]

  constructor(registry: Registry) {
    const counter = (part: string, help: string): Counter => new Counter({
      name: `gen_ai_client_inference_usage_${part}_total`, help, labelNames: CALL_LABELS, registers: [registry],
    })
    this.#duration = histogram(registry, 'gen_ai_client_inference_duration_seconds', 'Duration of an inference call.', [...CALL_LABELS, 'error_type'], DURATION_BUCKETS)
    this.#firstChunk = histogram(registry, 'gen_ai_client_inference_time_to_first_chunk_seconds', 'Time to the first chunk of a stream.', CALL_LABELS, DURATION_BUCKETS)
    this.#inputTokens = histogram(registry, 'gen_ai_client_inference_operation_input_tokens', 'Input tokens of each call.', CALL_LABELS, TOKEN_BUCKETS)
    this.#outputTokens = histogram(registry, 'gen_ai_client_inference_operation_output_tokens', 'Output tokens of each call.', CALL_LABELS, TOKEN_BUCKETS)
    this.#usage = [
      [counter('input_tokens', 'Input tokens, cached ones included.'), usage => usage.inputTokens],
      [counter('output_tokens', 'Output tokens, reasoning included.'), usage => usage.outputTokens],
      [counter('cache_read_input_tokens', 'Input tokens read from a cache.'), usage => usage.cachedInputTokens],
      [counter('cache_write_input_tokens', 'Input tokens written to a cache.'), usage => (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)],
      [counter('reasoning_output_tokens', 'Output tokens used for reasoning.'), usage => usage.reasoningTokens],
    ]
  }

  record(settlement: Settlement, call: Call, model: string): void {
    const labels = callLabels(call, model)
    const { usage } = settlement.row
    const duration = durationOf(settlement)
    if (duration !== null) this.#duration.observe({ ...labels, error_type: errorTypeOf(settlement) ?? '' }, duration)
    observe(this.#inputTokens, labels, usage.inputTokens)
    observe(this.#outputTokens, labels, usage.outputTokens)
    for (const [counter, tokensOf] of this.#usage) {
      const tokens = tokensOf(usage)
      if (tokens) counter.inc(labels, tokens)
    }
    if (settlement.row.end === 'complete') observe(this.#firstChunk, labels, firstTokenOf(settlement))
  }
}

/** `error.type`: the code of the gateway's error, or the status of the upstream's own; null = there was none. */
export function errorTypeOf({ row: { error, status, end } }: Settlement): string | null {
  if (error !== null) return error
  return end === 'error' && status !== null ? String(status) : null
}

function observe(metric: Histogram, labels: Labels, value: number | null): void {
  if (value !== null) metric.observe(labels, value)
}

function histogram(registry: Registry, name: string, help: string, labelNames: string[], buckets: number[]): Histogram {
  return new Histogram({ name, help, labelNames, buckets, registers: [registry] })
}
