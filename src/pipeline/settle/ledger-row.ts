import type { GatewayError } from '../../base/errors.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import { clientReceivedError } from '../exchange/error-response.ts'
import { callsModel, isBackgroundRequest, type Exchange } from '../exchange/exchange.ts'
import type { EndReason, LedgerRow } from '../../ledger/row.ts'
import { queuedMs } from '../parts/wait-for-room.ts'
import { isMetered, isUnmetered } from '../../pricing/metering.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import { provisional } from '../../pricing/provisional.ts'
import { addUsage, settleCost, provisionalSource } from '../../pricing/settled-cost.ts'
import { priceFor } from '../../pricing/tier-price.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import type { Usage } from '../../protocols/usage/usage.ts'
import { paidCost, type CostPart } from './paid-cost.ts'

/** The row of a running exchange, with known or estimated values, in case the process dies now. */
export function checkpointRow(exchange: Exchange): LedgerRow {
  const session = exchange.servedBy?.session?.usageSoFar()
  if (session) return ledgerRow(exchange, { ...session, ...paidCost(exchange, [{ attempt: exchange.servedBy, billed: true, costPico: session.costPico }]) })
  const parts = responsesSoFar(exchange)
  const [{ meter, quoted }] = parts
  const usage = parts.map(part => part.usage).reduce(addUsage)
  return ledgerRow(exchange, {
    usage,
    source: provisionalSource(meter, usage),
    quoted,
    ...paidCost(exchange, parts),
    ...isFree(exchange) && { costPico: 0n },
  })
}

/** Does the exchange request something free, such as a token count? */
function isFree(exchange: Exchange): boolean {
  const { endpoint } = exchange.classified
  // The messages of a WebSocket decide what is billed.
  return !isMetered(endpoint) && endpoint.session === null && !(callsModel(exchange) && isUnmetered(endpoint))
}

interface ResponseSoFar extends CostPart {
  readonly meter: StreamMeter | null
  readonly usage: Usage
  readonly quoted: QuotedPrice | null
}

/** The responses of the current attempt, and of earlier attempts that were interrupted. */
function responsesSoFar(exchange: Exchange): [ResponseSoFar, ...ResponseSoFar[]] {
  const part = (
    { response, quoted: quotedPrice, estimatedInput }: Pick<Exchange, 'response' | 'quoted' | 'estimatedInput'>, encoding: string | null,
    attempt: UpstreamAttempt | null,
  ): ResponseSoFar => {
    const meter = response?.kind === 'stream' ? response.meter : null
    const { usage, unread } = provisional({
      endpoint: exchange.meteredEndpoint,
      response,
      inputTokens: estimatedInput,
      request: exchange.prompt,
      inBackground: isBackgroundRequest(exchange),
      isCompressed: encoding !== null,
    })
    const quoted = priceFor(quotedPrice, response)
    const source = provisionalSource(meter, usage)
    const { costPico } = settleCost({ usage, source, billed: true, suspect: false, unread }, quoted)
    return { meter, usage, quoted, costPico, attempt, billed: true }
  }
  const { quoted, estimatedInput, servedBy, interruptedAttempts } = exchange
  // A held response was generated too, and is billed.
  const response = exchange.response ?? servedBy?.held ?? null
  const encoding = servedBy?.response?.encoding ?? null
  return [part({ response, quoted, estimatedInput }, encoding, servedBy), ...interruptedAttempts.map(attempt => (
    part({ response: attempt.metered, quoted: attempt.quoted, estimatedInput: attempt.estimatedInput }, null, attempt)
  ))]
}

interface RowUsage extends Pick<LedgerRow, 'usage' | 'source' | 'costPico' | 'billed'> {
  readonly quoted: QuotedPrice | null
  /** The model that the upstream named, if the request names none. */
  readonly model?: string | null
}

/** @param usage so far, or in total if the exchange has ended */
export function ledgerRow(exchange: Exchange, { usage, source, costPico, billed, quoted, model: reportedModel = null }: RowUsage): LedgerRow {
  const { classified, ended, servedBy, delivery: { status, firstByteAt, bytes } } = exchange
  const model = exchange.request.model ?? reportedModel
  const target = servedBy?.target ?? null
  const { endpoint } = classified
  return {
    requestId: exchange.id,
    startedAt: Math.round(exchange.startedWall),
    firstByteMs: firstByteAt === 0 ? null : round(firstByteAt - exchange.startedAt),
    durationMs: ended === null ? null : round(ended.at - exchange.startedAt),
    key: exchange.identity.key?.name ?? null,
    protocol: endpoint.protocol,
    endpoint: endpoint.name,
    model,
    upstream: target?.upstream.name ?? null,
    upstreamModel: target ? (target.model ?? model) : null,
    upstreamProtocol: servedBy ? (servedBy.translated?.translator.to ?? endpoint.protocol) : null,
    attempts: exchange.attempts.map(({ record }) => ({ ...record, ms: round(record.ms), atMs: round(record.atMs) })),
    status: status === 0 ? null : status,
    end: ended === null ? 'interrupted' : endOf(exchange, ended.failure),
    error: ended?.failure?.code ?? null,
    price: quoted?.price ?? null,
    priceVersion: quoted?.version ?? null,
    bytesIn: exchange.bytesIn,
    bytesOut: bytes,
    route: exchange.plan?.route.text ?? null,
    traceId: exchange.trace?.isSampled ? exchange.trace.traceId : null,
    group: exchange.identity.key?.group ?? null,
    owner: exchange.identity.key?.owner ?? null,
    user: exchange.attributed?.user ?? null,
    tags: exchange.attributed?.tags ?? null,
    billed,
    ...exchange.queueWaits.length > 0 && { queuedMs: round(queuedMs(exchange)) },
    ...exchange.policy !== null && { policy: exchange.policy },
    usage,
    source,
    costPico,
  }
}

function endOf(exchange: Exchange, failure: GatewayError | null): EndReason {
  if (failure === null) return exchange.servedBy?.receivedError ?? clientReceivedError(exchange) ? 'error' : 'complete'
  switch (failure.code) {
    case 'client_gone': return 'client_gone'
    case 'upstream_cut': return 'upstream_cut'
    case 'connect_timeout':
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
    case 'client_stalled':
    case 'body_timeout': return 'timeout'
    case 'key_revoked': return 'error'
    case 'draining': return exchange.attempts.length === 0 ? 'refused' : 'interrupted'
    default: return failure.source === 'client' ? 'refused' : 'error'
  }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
