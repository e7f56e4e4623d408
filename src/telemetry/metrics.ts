import { Counter, Histogram, Registry } from 'prom-client'
import type { Usage } from '../protocols/shared/usage.ts'
import { genAiMetrics } from './gen-ai-metrics.ts'
import type { Conventions, GenAiMetrics } from './gen-ai-metrics.ts'
import type { ModelLabels } from './model-labels.ts'
import type { Settlement } from './settlement.ts'

/** Seconds: from a refusal at once to a stream of half an hour. */
const DURATION_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800]
const FIRST_TOKEN_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 30, 60, 300]
const OVERHEAD_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1]

type TokenType = 'input' | 'cached_input' | 'cache_write' | 'output' | 'reasoning'

/** The labels of settlements that differ in their measured values only; made once for all of them. */
interface Series {
  readonly request: Record<string, string>
  readonly model: { readonly protocol: string, readonly model: string, readonly upstream: string }
  readonly tokens: Readonly<Record<TokenType, Record<string, string>>>
  readonly unpriced: Record<string, string>
  readonly cost: CostLabels
}

/** Costs add up in whole picodollars: a sum of floating-point numbers would drift away from the ledger's. */
interface CostLabels {
  readonly labels: Record<string, string>
  pico: bigint
  /** What the counter has, in USD. */
  counted: number
}

/**
 * Counters and histograms of all settled requests. Sums agree with the ledger: both are made from the same row.
 *
 * Source of the names: docs/reference/metrics.md.
 */
export class Metrics {
  readonly registry = new Registry()
  readonly models: ModelLabels
  /** By the values of all labels. */
  readonly #series = new Map<string, Series>()
  /** By key, model, upstream and source: requests of several statuses count together. */
  readonly #costs = new Map<string, CostLabels>()
  readonly #genAi: GenAiMetrics
  readonly #requests = this.#counter('gateway_requests_total', 'Requests that have ended, refused ones too: one for each row of the ledger.', ['protocol', 'endpoint', 'model', 'upstream', 'key', 'status', 'end'])
  readonly #duration = this.#histogram('gateway_request_duration_seconds', 'Time from the start of a request to its end.', ['protocol', 'model', 'upstream'], DURATION_BUCKETS)
  readonly #firstToken = this.#histogram('gateway_time_to_first_token_seconds', 'Time from the start of a stream to the first byte of its body.', ['protocol', 'model', 'upstream'], FIRST_TOKEN_BUCKETS)
  readonly #overhead = this.#histogram('gateway_overhead_seconds', 'Time that the gateway itself adds before the first byte: without waiting for the client or an upstream.', ['protocol'], OVERHEAD_BUCKETS)
  readonly #attempts = this.#counter('gateway_attempts_total', 'Attempts at upstreams.', ['upstream', 'model', 'outcome'])
  readonly #failovers = this.#counter('gateway_failovers_total', 'Attempts at another target after a failed one.', ['route', 'from', 'to'])
  readonly #continuations = this.#counter('gateway_continuations_total', 'Broken streams that another attempt continued.', ['route', 'from', 'to'])
  readonly #tokens = this.#counter('gateway_tokens_total', 'Tokens. input has cached_input and cache_write in it, output has reasoning in it.', ['key', 'model', 'upstream', 'type'])
  readonly #cost = this.#counter('gateway_cost_usd_total', 'Cost in USD of the requests whose price is known.', ['key', 'model', 'upstream', 'source'])
  readonly #unpriced = this.#counter('gateway_unpriced_requests_total', 'Requests whose cost is unknown, because the model has no price or the usage is unknown.', ['model', 'upstream'])
  readonly #rejections = this.#counter('gateway_limit_rejections_total', 'Requests that a limit refused.', ['key', 'limit'])

  constructor(conventions: Conventions, models: ModelLabels) {
    this.models = models
    this.#genAi = genAiMetrics(conventions, this.registry)
  }

  record(settlement: Settlement): void {
    const { row, refusedBy, overheadMs, isStream, call } = settlement
    const series = this.#seriesOf(settlement)
    this.#requests.inc(series.request)
    if (row.durationMs !== null) this.#duration.observe(series.model, row.durationMs / 1000)
    if (isStream && row.firstByteMs !== null) this.#firstToken.observe(series.model, row.firstByteMs / 1000)
    if (overheadMs !== null) this.#overhead.observe({ protocol: series.model.protocol }, overheadMs / 1000)
    if (refusedBy !== null) this.#rejections.inc({ key: row.key ?? '', limit: refusedBy })
    this.#countAttempts(settlement, series)
    this.#countTokens(row.usage, series)
    this.#countCost(row.costPico, series.cost)
    if (row.costPico === null) this.#unpriced.inc(series.unpriced)
    if (call !== null) this.#genAi.record(settlement, call, series.model.model)
  }

  #seriesOf({ row }: Settlement): Series {
    const { protocol, endpoint, upstream, key, status, end, source } = row
    const model = this.models.labelOf(row.model, row.route)
    const id = `${protocol}\n${endpoint}\n${upstream}\n${key}\n${status}\n${end}\n${source}\n${model}`
    return this.#series.get(id) ?? this.#createSeries(id, model, row)
  }

  #createSeries(id: string, model: string, row: Settlement['row']): Series {
    const protocol = row.protocol ?? ''
    const upstream = row.upstream ?? ''
    const key = row.key ?? ''
    const tokens = (type: TokenType) => ({ key, model, upstream, type })
    const series: Series = {
      request: {
        protocol, endpoint: row.endpoint ?? '', model, upstream, key,
        status: row.status === null ? '' : String(row.status), end: row.end,
      },
      model: { protocol, model, upstream },
      tokens: {
        input: tokens('input'), cached_input: tokens('cached_input'), cache_write: tokens('cache_write'),
        output: tokens('output'), reasoning: tokens('reasoning'),
      },
      unpriced: { model, upstream },
      cost: this.#costOf({ key, model, upstream, source: row.source }),
    }
    this.#series.set(id, series)
    return series
  }

  #costOf(labels: Record<string, string>): CostLabels {
    const id = Object.values(labels).join('\n')
    const known = this.#costs.get(id)
    if (known !== undefined) return known
    const cost = { labels, pico: 0n, counted: 0 }
    this.#costs.set(id, cost)
    return cost
  }

  #countAttempts({ row: { attempts, route }, continued }: Settlement, { model: { model } }: Series): void {
    for (const [at, { upstream, outcome }] of attempts.entries()) {
      this.#attempts.inc({ upstream, model, outcome })
      const next = attempts[at + 1]
      if (next === undefined) continue
      const labels = { route: routeLabel(route), from: upstream, to: next.upstream }
      if (continued[at]) this.#continuations.inc(labels)
      else if (next.upstream !== upstream || next.model !== attempts[at]?.model) this.#failovers.inc(labels)
    }
  }

  #countTokens(usage: Usage, { tokens }: Series): void {
    const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage
    const cacheWrite = (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)
    if (inputTokens) this.#tokens.inc(tokens.input, inputTokens)
    if (outputTokens) this.#tokens.inc(tokens.output, outputTokens)
    if (cachedInputTokens) this.#tokens.inc(tokens.cached_input, cachedInputTokens)
    if (cacheWrite) this.#tokens.inc(tokens.cache_write, cacheWrite)
    if (reasoningTokens) this.#tokens.inc(tokens.reasoning, reasoningTokens)
  }

  #countCost(pico: bigint | null, cost: CostLabels): void {
    if (pico === null || pico === 0n) return
    cost.pico += pico
    const usd = Number(cost.pico) / 1e12
    const added = usd - cost.counted
    cost.counted += added
    this.#cost.inc(cost.labels, added)
  }

  #counter<T extends string>(name: string, help: string, labelNames: readonly T[]): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.registry] })
  }

  #histogram<T extends string>(name: string, help: string, labelNames: readonly T[], buckets: number[]): Histogram<T> {
    return new Histogram({ name, help, labelNames, buckets, registers: [this.registry] })
  }
}

/** `routes[2]` of the route's text, which names its line too. */
function routeLabel(route: string | null): string {
  return route === null ? '' : /^[^,]*/.exec(route)![0]
}
