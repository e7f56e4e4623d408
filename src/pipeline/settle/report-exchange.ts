import { formatUsd } from '../../base/decimal.ts'
import { causeOf, type GatewayError } from '../../base/errors.ts'
import { callsModel, wantsEventStream, type Exchange } from '../exchange/exchange.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import { genAiCall } from '../../protocols/endpoint/gen-ai.ts'
import { ResponseFactsReader, type ResponseFacts } from '../../protocols/events/response-facts.ts'
import { parseJsonText } from '../../protocols/events/stream-event.ts'
import { isEncoded } from './record-bodies.ts'
import type { Settlement } from '../../telemetry/settlement.ts'
import type { AttemptFacts, RequestFacts } from '../../telemetry/tracing.ts'

/** @param suspect the upstream reported invalid usage */
export function logExchange(gateway: Gateway, exchange: Exchange, failure: GatewayError | null, row: LedgerRow, suspect: boolean): void {
  const { usage } = row
  const line = {
    ...exchange.logIds,
    key: row.key ?? undefined,
    user: row.user ?? undefined,
    tags: row.tags ?? undefined,
    policy: exchange.policy ?? undefined,
    ignored_attribution: ignoredText(exchange),
    client: exchange.clientAddress,
    method: exchange.req.method,
    path: exchange.target.path,
    endpoint: row.endpoint,
    model: row.model ?? undefined,
    upstream: row.upstream ?? undefined,
    attempts: row.attempts.length > 1 ? row.attempts.length : undefined,
    status: exchange.delivery.status,
    end: row.end,
    error: row.error ?? undefined,
    first_byte_ms: row.firstByteMs ?? undefined,
    ms: row.durationMs,
    queued_ms: row.queuedMs,
    bytes_in: row.bytesIn,
    bytes_out: row.bytesOut,
    input_tokens: usage.inputTokens ?? undefined,
    output_tokens: usage.outputTokens ?? undefined,
    cost_usd: row.costPico === null ? undefined : formatUsd(row.costPico),
  }
  if (suspect) {
    const which = { ...exchange.logIds, upstream: row.upstream }
    gateway.log.warn(which, 'the upstream reported invalid usage: it was counted instead, or is unknown')
  }
  if (failure === null) gateway.log.info(line, 'exchange')
  else gateway.log[failure.source === 'client' ? 'info' : 'warn']({ ...line, why: failure.message, cause: causeOf(failure) }, 'exchange')
}

/** What the client said of its user and tags, and the configuration does not count. */
function ignoredText({ attributed }: Exchange): readonly string[] | undefined {
  return attributed === null || attributed.ignored.length === 0 ? undefined : attributed.ignored
}

/** Reports to metrics and traces. */
export function sendToTelemetry(gateway: Gateway, exchange: Exchange, failure: GatewayError | null, row: LedgerRow): void {
  const { telemetry } = gateway.sharedState
  if (!telemetry) return
  const settlement = settlementOf(exchange, failure, row)
  telemetry.settled(settlement)
  if (!exchange.trace?.isSampled || exchange.ended === null) return
  exchange.trace.end(settlement, requestFacts(exchange, telemetry.sendsContent), exchange.ended.at)
}

function settlementOf(exchange: Exchange, failure: GatewayError | null, row: LedgerRow): Settlement {
  const { classified: { endpoint }, servedBy, attempts } = exchange
  const host = servedBy?.target.upstream.url?.hostname ?? null
  const isCall = servedBy !== null && callsModel(exchange)
  return {
    row,
    failure,
    refusedBy: exchange.refusedBy,
    continued: attempts.map(({ share, response }) => share !== null && response !== null),
    call: isCall ? { ...genAiCall(endpoint, servedBy.upstream.vendor), serverAddress: host } : null,
    isStream: isCall && wantsEventStream(exchange),
    overheadMs: exchange.overheadMs,
    queueWaits: exchange.queueWaits,
  }
}

/** A longer response is not parsed for its trace. */
const MAX_BODY_BYTES = 256 * 1024
const MAX_PATH_LENGTH = 1024

/** @param sendsContent include prompt and response */
function requestFacts(exchange: Exchange, sendsContent: boolean): RequestFacts {
  const { req, target, clientAddress, attempts, startedAt } = exchange
  return {
    startedAt,
    method: req.method ?? '',
    path: target.path.slice(0, MAX_PATH_LENGTH),
    client: clientAddress,
    attempts: attempts.map((attempt): AttemptFacts => ({
      startedAt: startedAt + attempt.record.atMs,
      ...serverOf(attempt),
      response: attempt.facts ?? bodyFacts(attempt),
    })),
    content: sendsContent ? contentOf(exchange) : null,
  }
}

function serverOf({ target: { upstream: { url } } }: UpstreamAttempt): Pick<AttemptFacts, 'serverAddress' | 'serverPort'> {
  if (url === null) return { serverAddress: null, serverPort: null }
  return { serverAddress: url.hostname, serverPort: Number(url.port || (url.protocol === 'https:' ? 443 : 80)) }
}

/** @returns null = no whole body, or one that is too long to parse for a trace */
function bodyFacts({ response }: UpstreamAttempt): ResponseFacts | null {
  if (response?.metered?.kind !== 'body' || response.encoding !== null) return null
  const { body } = response.metered
  if (body.length > MAX_BODY_BYTES) return null
  const facts = new ResponseFactsReader()
  facts.read(parseJsonText(body.toString()))
  return facts
}

function contentOf(exchange: Exchange): RequestFacts['content'] {
  const { recording, request: { body } } = exchange
  if (recording === null) return null
  return {
    request: body === null ? '' : textOf(recording.requestBody(body.bytes, null, isEncoded(exchange)).bytes),
    response: textOf(recording.responseBody().bytes),
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}
