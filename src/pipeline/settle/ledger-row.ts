import type { GatewayError } from '../../base/errors.ts'
import { clientReceivedError } from '../../context/error-response.ts'
import { callsModel, isBackgroundRequest } from '../../context/exchange.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { EndReason, LedgerRow } from '../../ledger/row.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import { provisional } from '../../pricing/provisional.ts'
import { isMetered, isUnmetered } from '../../pricing/settle-usage.ts'
import type { MeteredResponse, SettledCost } from '../../pricing/settle-usage.ts'
import { addUsage, addCost, settleCost, provisionalSource } from '../../pricing/settled-cost.ts'
import { priceFor } from '../../pricing/tier-price.ts'
import type { StreamMeter } from '../../protocols/shared/stream-meter.ts'
import type { Usage } from '../../protocols/shared/usage.ts'

/** The ledger's row of an exchange that is settled. */
export function finalRow(exchange: Exchange, bill: SettledCost): LedgerRow {
  return row(exchange, { ...bill, quoted: exchange.quoted })
}

/** The row as it is to stand if the process dies now: with what is known, or estimated, so far. */
export function checkpointRow(exchange: Exchange): LedgerRow {
  const session = exchange.session?.usageSoFar()
  if (session) return row(exchange, session)
  const parts = responsesSoFar(exchange)
  const [{ meter, quoted }] = parts
  const usage = parts.map(part => part.usage).reduce(addUsage)
  return row(exchange, {
    usage,
    source: provisionalSource(meter, usage),
    quoted,
    costPico: isFree(exchange) ? 0n : parts.map(part => part.costPico).reduce(addCost),
  })
}

/** Does it ask for something that costs nothing, such as to count tokens? */
function isFree(exchange: Exchange): boolean {
  const { endpoint } = exchange.classified
  // What is asked for over a WebSocket is said inside.
  return !isMetered(endpoint) && endpoint.session === null && !(callsModel(exchange) && isUnmetered(endpoint))
}

interface ResponseSoFar {
  readonly meter: StreamMeter | null
  readonly usage: Usage
  readonly quoted: QuotedPrice | null
  readonly costPico: bigint | null
}

interface ResponseInput {
  readonly response: MeteredResponse | null
  readonly quoted: QuotedPrice | null
  readonly estimatedInput: number | null
}

/** What is known of each answer that the client got some of: the one under way, and those before it. */
function responsesSoFar(exchange: Exchange): [ResponseSoFar, ...ResponseSoFar[]] {
  const part = ({ response: answer, quoted: asked, estimatedInput }: ResponseInput): ResponseSoFar => {
    const meter = answer?.kind === 'stream' ? answer.meter : null
    const { usage, unread } = provisional({
      endpoint: exchange.classified.endpoint,
      response: answer,
      inputTokens: estimatedInput,
      request: exchange.prompt,
      inBackground: isBackgroundRequest(exchange),
      isCompressed: exchange.responseEncoding !== null,
    })
    const quoted = priceFor(asked, answer)
    const source = provisionalSource(meter, usage)
    const { costPico } = settleCost({ usage, source, billed: true, suspect: false, unread }, quoted)
    return { meter, usage, quoted, costPico }
  }
  const { quoted, estimatedInput, earlierResponses: earlier } = exchange
  // What is kept back was made all the same, and is to be paid for.
  const answer = exchange.response ?? exchange.heldResponse?.() ?? null
  return [part({ response: answer, quoted, estimatedInput }), ...earlier.map(part)]
}

interface RowUsage extends Pick<LedgerRow, 'usage' | 'source' | 'costPico'> {
  readonly quoted: QuotedPrice | null
  /** As the upstream names it, where the request does not. */
  readonly model?: string | null
}

/** Until it has ended, as it is to stand if it is cut off. */
function row(exchange: Exchange, { usage, source, costPico, quoted, model: told = null }: RowUsage): LedgerRow {
  const { classified, ended, relay } = exchange
  // Of an answer that is on its way only whoever sends it knows.
  const { firstByteAt, bytes } = ended === null && relay !== null
    ? relay : { firstByteAt: exchange.firstByteAt, bytes: exchange.bytesOut }
  const model = exchange.request.model ?? told
  // One that was refused never got as far.
  const candidate = exchange.attempts.length === 0 ? null : exchange.candidate
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
    upstream: candidate?.upstream.name ?? null,
    upstreamModel: candidate ? (candidate.model ?? model) : null,
    attempts: exchange.attempts.map(attempt => (
      { ...attempt, ms: round(attempt.ms), atMs: round(attempt.atMs) }
    )),
    status: exchange.status === 0 ? null : exchange.status,
    end: ended === null ? 'interrupted' : endOf(exchange, ended.failure),
    error: ended?.failure?.code ?? null,
    price: quoted?.price ?? null,
    priceVersion: quoted?.version ?? null,
    bytesIn: exchange.bytesIn,
    bytesOut: bytes,
    route: exchange.plan?.route.text ?? null,
    usage,
    source,
    costPico,
  }
}

/** How an exchange ended, in the ledger's words. */
function endOf(exchange: Exchange, failure: GatewayError | null): EndReason {
  // An upstream's own error passes as it is: delivered, but no answer.
  if (failure === null) return clientReceivedError(exchange) ? 'error' : 'complete'
  switch (failure.code) {
    case 'client_gone':
      return 'client_gone'
    case 'upstream_cut':
      return 'upstream_cut'
    case 'connect_timeout':
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
    case 'client_stalled':
    case 'body_timeout':
      return 'timeout'
    case 'key_revoked':
      return 'error'
    case 'draining':
      return exchange.attempts.length === 0 ? 'refused' : 'interrupted'
    default:
      return failure.source === 'client' ? 'refused' : 'error'
  }
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
