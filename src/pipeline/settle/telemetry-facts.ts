import type { GatewayError } from '../../base/errors.ts'
import { callsModel, wantsEventStream } from '../exchange/exchange.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import { genAiCall } from '../../protocols/endpoint/gen-ai.ts'
import { ResponseFactsReader } from '../../protocols/events/response-facts.ts'
import type { ResponseFacts } from '../../protocols/events/response-facts.ts'
import { parseJsonText } from '../../protocols/events/stream-event.ts'
import type { Settlement } from '../../telemetry/settlement.ts'
import type { AttemptFacts, RequestFacts } from '../../telemetry/tracing.ts'

/** The facts for metrics and traces about an exchange that has ended. */
export function settlementOf(exchange: Exchange, failure: GatewayError | null, row: LedgerRow): Settlement {
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
  }
}

/** Bytes of a response that is parsed for its trace. */
const MAX_BODY_BYTES = 256 * 1024
/** Maximum length of a path in a trace. */
const MAX_PATH_LENGTH = 1024

/**
 * What the trace of an exchange contains in addition to its settlement. @param sendsContent include prompt and
 * response
 */
export function requestFacts(exchange: Exchange, sendsContent: boolean): RequestFacts {
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

/** The facts of a whole body; null = none, or the body is too long to parse for a trace. */
function bodyFacts({ response }: UpstreamAttempt): ResponseFacts | null {
  if (response?.metered?.kind !== 'body' || response.encoding !== null) return null
  const { body } = response.metered
  if (body.length > MAX_BODY_BYTES) return null
  const facts = new ResponseFactsReader()
  facts.read(parseJsonText(body.toString()))
  return facts
}

function contentOf({ recording, request: { body } }: Exchange): RequestFacts['content'] {
  if (recording === null) return null
  return {
    request: body === null ? '' : textOf(recording.requestBody(body.bytes, null).bytes),
    response: textOf(recording.responseBody().bytes),
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}
