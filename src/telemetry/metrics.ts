import { Registry } from 'prom-client'
import { HEDGE_LOST } from '../ledger/row.ts'
import { genAiMetrics, type Conventions, type GenAiMetrics, type GenAiSeries } from './gen-ai-metrics.ts'
import type { CallerLabels } from './caller-labels.ts'
import type { ModelLabels } from './model-labels.ts'
import { CounterFamily, HistogramFamily, type CounterSeries, type HistogramSeries } from './series.ts'
import { errorTypeOf, type Settlement } from './settlement.ts'

/** Bounds of the buckets in seconds: from a request that is refused at once to a stream of half an hour. */
const DURATION_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800]
const FIRST_TOKEN_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 30, 60, 300]
const QUEUE_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 300, 600]
const OVERHEAD_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1]

const HOOK_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

const NO_WAITS: NonNullable<Settlement['queueWaits']> = []

type TokenType = 'input' | 'cached_input' | 'cache_write' | 'output' | 'reasoning'

interface SettlementSeries {
  readonly model: string
  readonly requests: CounterSeries
  readonly duration: HistogramSeries
  readonly firstToken: HistogramSeries
  readonly overhead: HistogramSeries
  readonly tokens: Readonly<Record<TokenType, CounterSeries>>
  readonly cost: CostSeries
  readonly unpriced: CounterSeries
  /** Series of the GenAI conventions; null = no model was called. */
  readonly genAi: GenAiSeries | null
}

/** A cost. `pico` counts whole picodollars, because a sum of floating-point numbers would differ from the sum in the ledger. */
interface CostSeries {
  readonly usd: CounterSeries
  pico: bigint
}

/** Counters and histograms of settled requests, counted from the rows of the ledger. Source of the names: docs/operation/telemetry.md. */
export class Metrics {
  readonly registry = new Registry()
  readonly models: ModelLabels
  readonly callers: CallerLabels
  readonly #series = new Map<string, SettlementSeries>()
  /** Series of cost by their counter, because requests with different statuses share one cost. */
  readonly #costSeries = new Map<CounterSeries, CostSeries>()
  readonly #genAi: GenAiMetrics
  readonly #requests = this.#counter('gateway_requests_total', 'Requests that have ended, refused ones too: one for each row of the ledger.')
  readonly #duration = this.#histogram('gateway_request_duration_seconds', 'Time from the start of a request to its end.', DURATION_BUCKETS)
  readonly #firstToken = this.#histogram('gateway_time_to_first_token_seconds', 'Time from the start of a stream to the first byte of its body.', FIRST_TOKEN_BUCKETS)
  readonly #overhead = this.#histogram('gateway_overhead_seconds', 'Time that the gateway itself adds before the first byte: without waiting for the client or an upstream.', OVERHEAD_BUCKETS)
  readonly #attempts = this.#counter('gateway_attempts_total', 'Attempts at upstreams.')
  readonly #failovers = this.#counter('gateway_failovers_total', 'Attempts at another target after a failed one.')
  readonly #continuations = this.#counter('gateway_continuations_total', 'Broken streams that another attempt continued.')
  readonly #tokens = this.#counter('gateway_tokens_total', 'Tokens. input has cached_input and cache_write in it, output has reasoning in it.')
  readonly #cost = this.#counter('gateway_cost_usd_total', 'Cost in USD of the requests whose price is known.')
  readonly #unpriced = this.#counter('gateway_unpriced_requests_total', 'Requests whose cost is unknown, because the model has no price or the usage is unknown.')
  readonly #rejections = this.#counter('gateway_limit_rejections_total', 'Requests that a limit refused.')

  readonly #checkMatches = this.#counter('gateway_check_matches_total', 'What checks found, by check and action.')
  readonly #hookCalls = this.#counter('gateway_hook_calls_total', 'Calls of hooks, by what they decided or why they did not.')
  readonly #hookDuration = this.#histogram('gateway_hook_duration_seconds', 'Time that a call of a hook took, with the time in its queue.', HOOK_BUCKETS)

  readonly #queueWait = this.#histogram('gateway_queue_wait_seconds', 'Time that requests waited in a queue for room.', QUEUE_BUCKETS)
  readonly #queueRefusals = this.#counter('gateway_queue_refusals_total', 'Requests that a queue refused: it was full, or the wait ended without room.')

  constructor(conventions: Conventions, models: ModelLabels, callers: CallerLabels) {
    this.models = models
    this.callers = callers
    this.#genAi = genAiMetrics(conventions, this.registry)
  }

  record(settlement: Settlement): void {
    const { row, refusedBy, overheadMs, isStream, queueWaits = NO_WAITS } = settlement
    const series = this.#seriesOf(settlement)
    series.requests.value++
    if (row.durationMs !== null) series.duration.observe(row.durationMs / 1000)
    if (isStream && row.firstByteMs !== null) series.firstToken.observe(row.firstByteMs / 1000)
    if (overheadMs !== null) series.overhead.observe(overheadMs / 1000)
    if (refusedBy !== null) this.#rejections.series({ key: this.callers.labelOf(row.key) ?? '', limit: refusedBy }).value++
    for (const { scope, ms, isRefused } of queueWaits) {
      this.#queueWait.series({ scope }).observe(ms / 1000)
      if (isRefused) this.#queueRefusals.series({ scope }).value++
    }
    this.#countAttempts(settlement, series.model)
    const { usage, costPico } = row
    const { tokens, cost } = series
    tokens.input.value += usage.inputTokens ?? 0
    tokens.output.value += usage.outputTokens ?? 0
    tokens.cached_input.value += usage.cachedInputTokens ?? 0
    tokens.cache_write.value += (usage.cacheWrite5mTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0)
    tokens.reasoning.value += usage.reasoningTokens ?? 0
    if (costPico === null) {
      series.unpriced.value++
    } else {
      cost.pico += costPico
      cost.usd.value = Number(cost.pico) / 1e12
    }
    series.genAi?.record(settlement)
  }

  recordCheck(check: string, action: string, count: number): void {
    this.#checkMatches.series({ check, action }).value += count
  }

  /** @param outcome what the hook decided, or why it did not @param ms from the call to its outcome */
  recordHook(hook: string, on: string, outcome: string, ms: number): void {
    this.#hookCalls.series({ hook, on, outcome }).value++
    this.#hookDuration.series({ hook }).observe(ms / 1000)
  }

  #seriesOf(settlement: Settlement): SettlementSeries {
    const { row, call } = settlement
    const { protocol, endpoint, upstream, status, end, source, error } = row
    const key = this.callers.isActive ? this.callers.labelOf(row.key) : row.key
    const model = this.models.labelOf(row.model, row.route)
    const server = call === null ? '' : `${call.provider}\n${call.serverAddress}`
    const id = `${protocol}\n${endpoint}\n${upstream}\n${key}\n${status}\n${end}\n${source}\n${error}\n${server}\n${model}`
    const known = this.#series.get(id)
    if (known !== undefined) return known
    const series = this.#createSeries(settlement, model, key ?? '')
    this.#series.set(id, series)
    return series
  }

  #createSeries(settlement: Settlement, model: string, key: string): SettlementSeries {
    const { row, call } = settlement
    const protocol = row.protocol ?? ''
    const upstream = row.upstream ?? ''
    const status = row.status === null ? '' : String(row.status)
    const tokens = (type: TokenType) => this.#tokens.series({ key, model, upstream, type })
    return {
      model,
      requests: this.#requests.series({ protocol, endpoint: row.endpoint ?? '', model, upstream, key, status, end: row.end }),
      duration: this.#duration.series({ protocol, model, upstream }),
      firstToken: this.#firstToken.series({ protocol, model, upstream }),
      overhead: this.#overhead.series({ protocol }),
      tokens: {
        input: tokens('input'), cached_input: tokens('cached_input'), cache_write: tokens('cache_write'),
        output: tokens('output'), reasoning: tokens('reasoning'),
      },
      cost: this.#costOf(this.#cost.series({ key, model, upstream, source: row.source })),
      unpriced: this.#unpriced.series({ model, upstream }),
      genAi: call === null ? null : this.#genAi.series(call, model, errorTypeOf(settlement)),
    }
  }

  #costOf(usd: CounterSeries): CostSeries {
    const known = this.#costSeries.get(usd)
    if (known !== undefined) return known
    const cost = { usd, pico: 0n }
    this.#costSeries.set(usd, cost)
    return cost
  }

  #countAttempts({ row: { attempts, route }, continued }: Settlement, model: string): void {
    for (const [at, { upstream, outcome, atMs }] of attempts.entries()) {
      this.#attempts.series({ upstream, model, outcome }).value++
      const next = attempts[at + 1]
      // The attempt after a hedge is not a failover, because a hedge runs in parallel.
      if (next === undefined || outcome === HEDGE_LOST || (next.atMs ?? 0) < (atMs ?? 0)) continue
      const labels = { route: routeLabel(route), from: upstream, to: next.upstream }
      if (continued[at]) this.#continuations.series(labels).value++
      else if (next.upstream !== upstream || next.model !== attempts[at]?.model) this.#failovers.series(labels).value++
    }
  }

  #counter(name: string, help: string): CounterFamily {
    return new CounterFamily(name, help, this.registry)
  }

  #histogram(name: string, help: string, bounds: readonly number[]): HistogramFamily {
    return new HistogramFamily(name, help, this.registry, bounds)
  }
}

/** The label of a route: `routes[2]` from the beginning of the route's text. */
function routeLabel(route: string | null): string {
  return route === null ? '' : /^[^,]*/.exec(route)![0]
}
