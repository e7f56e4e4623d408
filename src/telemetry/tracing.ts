import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, defaultTextMapGetter, trace } from '@opentelemetry/api'
import type { Context, Span, SpanContext, Tracer } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { RandomIdGenerator, SamplingDecision, type IdGenerator, type Sampler } from '@opentelemetry/sdk-trace'
import type { ResponseFacts } from '../protocols/events/response-facts.ts'
import { HEDGE_LOST } from '../ledger/row.ts'
import { errorTypeOf, type Settlement } from './settlement.ts'

const PROPAGATOR = new W3CTraceContextPropagator()

export interface RequestFacts {
  /** Start of the request, in ms on the monotonic clock. */
  readonly startedAt: number
  readonly method: string
  readonly path: string
  readonly client: string
  readonly attempts: readonly AttemptFacts[]
  /** Prompt and response; null = traces do not contain them. */
  readonly content: { readonly request: string, readonly response: string } | null
}

export interface AttemptFacts {
  /** Start of the attempt, in ms on the monotonic clock. */
  readonly startedAt: number
  readonly serverAddress: string | null
  readonly serverPort: number | null
  /** What the response says about itself; null = the response was not read. */
  readonly response: ResponseFacts | null
}

export class RequestTracer {
  readonly #spans: SpanWriter
  readonly #sampler: Sampler
  readonly #ids = new RandomIdGenerator()

  /** @param sampler decides whether a request is traced, before the request has a span */
  constructor(spans: SpanWriter, sampler: Sampler) {
    this.#spans = spans
    this.#sampler = sampler
  }

  /** @param headers headers of the request; `traceparent` names the parent span */
  start(headers: Readonly<Record<string, string | string[] | undefined>>): RequestTrace {
    const parent = 'traceparent' in headers ? PROPAGATOR.extract(ROOT_CONTEXT, headers, defaultTextMapGetter) : ROOT_CONTEXT
    const { traceId = this.#ids.generateTraceId(), traceState } = trace.getSpanContext(parent) ?? {}
    const { decision } = this.#sampler.shouldSample(parent, traceId, '', SpanKind.SERVER, {}, [])
    const isSampled = decision === SamplingDecision.RECORD_AND_SAMPLED
    return new RequestTrace(this.#spans, this.#ids, parent, {
      traceId, spanId: this.#ids.generateSpanId(),
      traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE, ...traceState !== undefined && { traceState },
    })
  }
}

/** Creates spans that have given ids. */
export class SpanWriter {
  readonly #tracer: Tracer
  readonly #ids: PresetIds

  /** @param ids the id generator of the provider that created `tracer` */
  constructor(tracer: Tracer, ids: PresetIds) {
    this.#tracer = tracer
    this.#ids = ids
  }

  start(name: string, { traceId, spanId }: SpanContext, kind: SpanKind, startTime: number, parent: Context): Span {
    this.#ids.use(traceId, spanId)
    return this.#tracer.startSpan(name, { kind, startTime }, parent)
  }
}

/** Gives the next span the ids that were already sent to the upstream and logged. */
export class PresetIds implements IdGenerator {
  #traceId = ''
  #spanId = ''

  use(traceId: string, spanId: string): void {
    this.#traceId = traceId
    this.#spanId = spanId
  }

  generateTraceId(): string {
    return this.#traceId
  }

  generateSpanId(): string {
    return this.#spanId
  }
}

/**
 * The spans of a request: one for the request, and one for each attempt. Until the request is settled, only their ids exist. `end` creates
 * the spans.
 */
export class RequestTrace {
  readonly #spans: SpanWriter
  readonly #ids: IdGenerator
  readonly #parent: Context
  readonly #context: SpanContext
  readonly #attempts: SpanContext[] = []

  constructor(spans: SpanWriter, ids: IdGenerator, parent: Context, context: SpanContext) {
    this.#spans = spans
    this.#ids = ids
    this.#parent = parent
    this.#context = context
  }

  get traceId(): string {
    return this.#context.traceId
  }

  get spanId(): string {
    return this.#context.spanId
  }

  /** false = the ids are only sent to upstreams and logged. */
  get isSampled(): boolean {
    return this.#context.traceFlags === TraceFlags.SAMPLED
  }

  /** @returns headers that name the attempt's span for the upstream, as a flat list of names and values */
  startAttempt(): string[] {
    const context = { ...this.#context, spanId: this.#ids.generateSpanId() }
    this.#attempts.push(context)
    const { traceId, spanId, traceFlags, traceState } = context
    // Written here, because the propagator would create three objects for this text (W3C Trace Context, 3.2).
    const parent = ['traceparent', `00-${traceId}-${spanId}-0${traceFlags}`]
    return traceState === undefined ? parent : [...parent, 'tracestate', traceState.serialize()]
  }

  /** @param at index of the attempt that becomes the last one */
  moveAttemptToEnd(at: number): void {
    this.#attempts.push(...this.#attempts.splice(at, 1))
  }

  /** Creates the spans. Must be called only for sampled requests. @param endedAt ms on the monotonic clock */
  end(settlement: Settlement, facts: RequestFacts, endedAt: number): void {
    const { row } = settlement
    const name = `${facts.method} ${row.endpoint ?? 'other'}`
    const span = this.#spans.start(name, this.#context, SpanKind.SERVER, facts.startedAt, this.#parent)
    const errorType = errorTypeOf(settlement)
    setAttributes(span, {
      'http.request.method': facts.method,
      'url.path': facts.path,
      'client.address': facts.client,
      'gateway.request_id': row.requestId,
      'gateway.end': row.end,
      'gateway.attempts': row.attempts.length,
      'http.response.status_code': row.status,
      'gateway.key': row.key,
      'user.id': row.user,
      ...row.tags && tagAttributes(row.tags),
      'gateway.route': row.route,
      'gateway.upstream': row.upstream,
      'gateway.cost_usd': usd(row.costPico),
      'error.type': errorType,
      'gateway.request.body': facts.content?.request ?? null,
      'gateway.response.body': facts.content?.response ?? null,
    })
    // An error that the client caused does not set the status of a server span (OpenTelemetry, HTTP spans, status).
    if (errorType !== null && settlement.failure?.source !== 'client' && (row.status ?? 500) >= 500) {
      span.setStatus({ code: SpanStatusCode.ERROR })
    }
    const context = trace.setSpan(this.#parent, span)
    for (const [at, attempt] of facts.attempts.entries()) this.#writeAttempt(at, attempt, settlement, context)
    span.end(endedAt)
  }

  #writeAttempt(at: number, facts: AttemptFacts, { row, call }: Settlement, parent: Context): void {
    const record = row.attempts[at]
    const context = this.#attempts[at]
    if (record === undefined || context === undefined) return
    const name = [call?.operation, record.model ?? record.upstream].filter(Boolean).join(' ')
    const span = this.#spans.start(name, context, SpanKind.CLIENT, facts.startedAt, parent)
    const isLast = at === row.attempts.length - 1
    const isError = record.outcome !== 'ok' && record.outcome !== HEDGE_LOST
    const { usage } = row
    setAttributes(span, {
      'gateway.request_id': row.requestId,
      'gateway.upstream': record.upstream,
      'gateway.attempt': at + 1,
      'gen_ai.operation.name': call?.operation ?? null,
      'gen_ai.provider.name': call?.provider ?? null,
      'gen_ai.request.model': record.model,
      'gen_ai.response.id': facts.response?.id ?? null,
      'gen_ai.response.model': facts.response?.model ?? null,
      'server.address': facts.serverAddress,
      'server.port': facts.serverPort,
      'http.response.status_code': record.status ?? null,
      'gateway.key': row.key,
      'gateway.route': row.route,
      'error.type': isError ? record.said ?? record.outcome : null,
      'gen_ai.usage.input_tokens': isLast ? usage.inputTokens : record.inputTokens ?? null,
      'gen_ai.usage.output_tokens': isLast ? usage.outputTokens : record.outputTokens ?? null,
      'gen_ai.usage.cache_read.input_tokens': isLast ? usage.cachedInputTokens : null,
      'gen_ai.usage.cache_creation.input_tokens': isLast ? cacheWrites(row) : null,
      'gen_ai.usage.reasoning.output_tokens': isLast ? usage.reasoningTokens : null,
      'gateway.cost_usd': isLast ? usd(row.costPico) : null,
    })
    const reasons = facts.response?.finishReasons ?? []
    if (reasons.length > 0) span.setAttribute('gen_ai.response.finish_reasons', reasons)
    if (isError) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end(facts.startedAt + record.ms)
  }
}

function cacheWrites({ usage: { cacheWrite5mTokens, cacheWrite1hTokens } }: Settlement['row']): number | null {
  if (cacheWrite5mTokens === null && cacheWrite1hTokens === null) return null
  return (cacheWrite5mTokens ?? 0) + (cacheWrite1hTokens ?? 0)
}

function usd(pico: bigint | null): number | null {
  return pico === null ? null : Number(pico) / 1e12
}

/** null = unknown: not set */
function tagAttributes(tags: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(tags).map(([name, value]) => [`gateway.tag.${name}`, value]))
}

function setAttributes(span: Span, attributes: Readonly<Record<string, string | number | null>>): void {
  for (const [name, value] of Object.entries(attributes)) if (value !== null) span.setAttribute(name, value)
}
