import { ROOT_CONTEXT, SpanKind, SpanStatusCode, defaultTextMapGetter, defaultTextMapSetter, trace } from '@opentelemetry/api'
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import type { ResponseFacts } from '../protocols/shared/response-facts.ts'
import { errorTypeOf } from './settlement.ts'
import type { Settlement } from './settlement.ts'

/** What a trace tells of the request that its settlement does not have. */
export interface RequestFacts {
  readonly method: string
  readonly path: string
  readonly client: string
  /** Of each attempt, in their order. */
  readonly attempts: readonly AttemptFacts[]
  /** Prompt and response, where they are to be sent; null = they stay here. */
  readonly content: { readonly request: string, readonly response: string } | null
}

export interface AttemptFacts {
  /** On the monotonic clock, ms. */
  readonly startedAt: number
  readonly serverAddress: string | null
  readonly serverPort: number | null
  /** null = it was not read. */
  readonly response: ResponseFacts | null
}

/** Starts the traces of requests. */
export class RequestTracer {
  readonly #tracer: Tracer
  readonly #propagator = new W3CTraceContextPropagator()

  constructor(tracer: Tracer) {
    this.#tracer = tracer
  }

  /** @param headers of the request: `traceparent` names the span that it belongs to */
  start(headers: Readonly<Record<string, string | string[] | undefined>>, startedAt: number): RequestTrace {
    const parent = 'traceparent' in headers
      ? this.#propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter)
      : ROOT_CONTEXT
    const span = this.#tracer.startSpan('request', { kind: SpanKind.SERVER, startTime: startedAt }, parent)
    return new RequestTrace(this.#tracer, this.#propagator, span, parent)
  }
}

/** The trace of one request: its span, and one for each attempt. */
export class RequestTrace {
  readonly traceId: string
  readonly spanId: string
  /** The spans are recorded and sent; otherwise they are only named to the upstream and in the log. */
  readonly isSampled: boolean
  readonly #tracer: Tracer
  readonly #propagator: W3CTraceContextPropagator
  readonly #span: Span
  readonly #context: Context
  readonly #attempts: Span[] = []

  constructor(tracer: Tracer, propagator: W3CTraceContextPropagator, span: Span, parent: Context) {
    const { traceId, spanId } = span.spanContext()
    this.traceId = traceId
    this.spanId = spanId
    this.isSampled = span.isRecording()
    this.#tracer = tracer
    this.#propagator = propagator
    this.#span = span
    this.#context = trace.setSpan(parent, span)
  }

  /**
   * An attempt starts.
   *
   * @param startedAt on the monotonic clock, ms
   * @returns the headers that name its span to the upstream; flat
   */
  startAttempt(startedAt: number): string[] {
    const span = this.#tracer.startSpan('attempt', { kind: SpanKind.CLIENT, startTime: startedAt }, this.#context)
    this.#attempts.push(span)
    const headers: Record<string, string> = {}
    this.#propagator.inject(trace.setSpan(this.#context, span), headers, defaultTextMapSetter)
    return Object.entries(headers).flat()
  }

  /** The request is settled. @param endedAt on the monotonic clock, ms */
  end(settlement: Settlement, facts: RequestFacts | null, endedAt: number): void {
    if (!this.isSampled || facts === null) return
    for (const [at, span] of this.#attempts.entries()) endAttempt(span, at, settlement, facts)
    const { row } = settlement
    const span = this.#span
    const errorType = errorTypeOf(settlement)
    span.updateName(`${facts.method} ${row.endpoint ?? 'other'}`)
    span.setAttributes({
      'http.request.method': facts.method,
      'url.path': facts.path,
      'client.address': facts.client,
      'gateway.request_id': row.requestId,
      'gateway.end': row.end,
      'gateway.attempts': row.attempts.length,
      ...optional({
        'http.response.status_code': row.status,
        'gateway.key': row.key,
        'gateway.route': row.route,
        'gateway.upstream': row.upstream,
        'gateway.cost_usd': usd(row.costPico),
        'error.type': errorType,
      }),
      ...facts.content && {
        'gateway.request.body': facts.content.request, 'gateway.response.body': facts.content.response,
      },
    })
    // An error of the client is none of the server's span (OpenTelemetry, HTTP spans, status).
    if (errorType !== null && settlement.failure?.source !== 'client' && (row.status ?? 500) >= 500) {
      span.setStatus({ code: SpanStatusCode.ERROR })
    }
    span.end(endedAt)
  }
}

function endAttempt(span: Span, at: number, { row, call }: Settlement, { attempts }: RequestFacts): void {
  const record = row.attempts[at]
  const facts = attempts[at]
  if (record === undefined || facts === undefined) {
    span.end()
    return
  }
  const isLast = at === row.attempts.length - 1
  const { usage } = row
  span.updateName([call?.operation, record.model ?? record.upstream].filter(Boolean).join(' '))
  span.setAttributes({
    'gateway.request_id': row.requestId,
    'gateway.upstream': record.upstream,
    'gateway.attempt': at + 1,
    ...optional({
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
      'error.type': record.outcome === 'ok' ? null : record.said ?? record.outcome,
      'gen_ai.usage.input_tokens': isLast ? usage.inputTokens : record.inputTokens ?? null,
      'gen_ai.usage.output_tokens': isLast ? usage.outputTokens : record.outputTokens ?? null,
      'gen_ai.usage.cache_read.input_tokens': isLast ? usage.cachedInputTokens : null,
      'gen_ai.usage.cache_creation.input_tokens': isLast ? cacheWrites(row) : null,
      'gen_ai.usage.reasoning.output_tokens': isLast ? usage.reasoningTokens : null,
      'gateway.cost_usd': isLast ? usd(row.costPico) : null,
    }),
  })
  const reasons = facts.response?.finishReasons ?? []
  if (reasons.length > 0) span.setAttribute('gen_ai.response.finish_reasons', reasons)
  if (record.outcome !== 'ok') span.setStatus({ code: SpanStatusCode.ERROR })
  span.end(facts.startedAt + record.ms)
}

function cacheWrites({ usage: { cacheWrite5mTokens, cacheWrite1hTokens } }: Settlement['row']): number | null {
  if (cacheWrite5mTokens === null && cacheWrite1hTokens === null) return null
  return (cacheWrite5mTokens ?? 0) + (cacheWrite1hTokens ?? 0)
}

function usd(pico: bigint | null): number | null {
  return pico === null ? null : Number(pico) / 1e12
}

/** Attributes without those that are unknown. */
function optional(attributes: Readonly<Record<string, string | number | null>>): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== null)) as Attributes
}
