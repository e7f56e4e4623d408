import type { Registry } from 'prom-client'
import type { Usage } from '../protocols/usage/usage.ts'
import { CounterFamily, HistogramFamily } from './series.ts'
import type { Settlement } from './settlement.ts'

/**
 * Which names the metrics have: `v1.41` = the names that current dashboards use; `latest` = the names in the repository of the GenAI
 * conventions.
 */
export type Conventions = 'v1.41' | 'latest'

export interface GenAiMetrics {
  /** @param model value of the model's label @param errorType null = the call succeeded */
  series(call: Call, model: string, errorType: string | null): GenAiSeries
}

export interface GenAiSeries {
  record(settlement: Settlement): void
}

type Call = NonNullable<Settlement['call']>
type Labels = Record<string, string>

/** Bounds of the buckets that the conventions define. Source: opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics. */
const DURATION_BUCKETS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const TOKEN_BUCKETS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
const FIRST_TOKEN_BUCKETS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const PER_TOKEN_BUCKETS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]

export function genAiMetrics(conventions: Conventions, registry: Registry): GenAiMetrics {
  return conventions === 'latest' ? latestMetrics(registry) : commonMetrics(registry)
}

/** Duration of the last attempt in seconds. Each earlier attempt counts as a separate, failed call. */
function durationOf({ row: { attempts } }: Settlement): number | null {
  const last = attempts.at(-1)
  return last === undefined ? null : last.ms / 1000
}

/** Seconds from the start of the last attempt to the first byte of the response; null = the response is not a stream. */
function firstTokenOf({ row: { attempts, firstByteMs }, isStream }: Settlement): number | null {
  const startedMs = attempts.at(-1)?.atMs
  if (!isStream || firstByteMs === null || startedMs === undefined || firstByteMs < startedMs) return null
  return (firstByteMs - startedMs) / 1000
}

/** Seconds for each output token after the first output token; null = unknown. */
function perTokenOf({ row: { firstByteMs, durationMs, usage: { outputTokens } }, isStream }: Settlement): number | null {
  if (!isStream || firstByteMs === null || durationMs === null || outputTokens === null || outputTokens < 2) return null
  return (durationMs - firstByteMs) / 1000 / (outputTokens - 1)
}

function callLabels({ operation, provider, serverAddress }: Call, model: string): Labels {
  return {
    gen_ai_operation_name: operation, gen_ai_provider_name: provider, gen_ai_request_model: model, server_address: serverAddress ?? '',
  }
}

function commonMetrics(registry: Registry): GenAiMetrics {
  const histogram = (name: string, help: string, bounds: readonly number[]) => new HistogramFamily(name, help, registry, bounds)
  const durations = histogram('gen_ai_client_operation_duration_seconds', 'GenAI operation duration.', DURATION_BUCKETS)
  const tokens = histogram('gen_ai_client_token_usage', 'Number of input and output tokens used.', TOKEN_BUCKETS)
  const firstTokenHelp = 'Time to generate the first token of a successful response.'
  const firstTokens = histogram('gen_ai_server_time_to_first_token_seconds', firstTokenHelp, FIRST_TOKEN_BUCKETS)
  const perTokenHelp = 'Time per output token after the first token of a successful response.'
  const perTokens = histogram('gen_ai_server_time_per_output_token_seconds', perTokenHelp, PER_TOKEN_BUCKETS)
  return {
    series(call, model, errorType) {
      const labels = callLabels(call, model)
      const duration = durations.series({ ...labels, error_type: errorType ?? '' })
      const input = tokens.series({ ...labels, gen_ai_token_type: 'input' })
      const output = tokens.series({ ...labels, gen_ai_token_type: 'output' })
      const firstToken = firstTokens.series(labels)
      const perToken = perTokens.series(labels)
      return {
        record(settlement) {
          const { usage: { inputTokens, outputTokens }, end } = settlement.row
          duration.observe(durationOf(settlement))
          input.observe(inputTokens)
          output.observe(outputTokens)
          if (end !== 'complete') return
          firstToken.observe(firstTokenOf(settlement))
          perToken.observe(perTokenOf(settlement))
        },
      }
    },
  }
}

/** Counters of `latest`: the last part of the name, the help text, and the tokens to add up. */
const USAGE_COUNTERS: readonly (readonly [part: string, help: string, tokens: (usage: Usage) => number | null])[] = [
  ['input_tokens', 'Input tokens, cached ones included.', usage => usage.inputTokens],
  ['output_tokens', 'Output tokens, reasoning included.', usage => usage.outputTokens],
  ['cache_read_input_tokens', 'Input tokens read from a cache.', usage => usage.cachedInputTokens],
  ['cache_write_input_tokens', 'Input tokens written to a cache.', usage => (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)],
  ['reasoning_output_tokens', 'Output tokens used for reasoning.', usage => usage.reasoningTokens],
]

function latestMetrics(registry: Registry): GenAiMetrics {
  const histogram = (part: string, help: string, bounds: readonly number[]) =>
    new HistogramFamily(`gen_ai_client_inference_${part}`, help, registry, bounds)
  const durations = histogram('duration_seconds', 'Duration of an inference call.', DURATION_BUCKETS)
  const firstChunks = histogram('time_to_first_chunk_seconds', 'Time to the first chunk of a stream.', DURATION_BUCKETS)
  const inputTokens = histogram('operation_input_tokens', 'Input tokens of each call.', TOKEN_BUCKETS)
  const outputTokens = histogram('operation_output_tokens', 'Output tokens of each call.', TOKEN_BUCKETS)
  const usageTokens = USAGE_COUNTERS.map(([part, help]) => new CounterFamily(`gen_ai_client_inference_usage_${part}_total`, help, registry))
  return {
    series(call, model, errorType) {
      const labels = callLabels(call, model)
      const duration = durations.series({ ...labels, error_type: errorType ?? '' })
      const input = inputTokens.series(labels)
      const output = outputTokens.series(labels)
      const firstChunk = firstChunks.series(labels)
      const counters = usageTokens.map(counter => counter.series(labels))
      return {
        record(settlement) {
          const { usage, end } = settlement.row
          duration.observe(durationOf(settlement))
          input.observe(usage.inputTokens)
          output.observe(usage.outputTokens)
          for (const [at, counter] of counters.entries()) counter.value += USAGE_COUNTERS[at]?.[2](usage) ?? 0
          if (end === 'complete') firstChunk.observe(firstTokenOf(settlement))
        },
      }
    },
  }
}
