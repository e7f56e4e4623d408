import { formatUsd } from '../../base/decimal.ts'
import { causeOf } from '../../base/errors.ts'
import type { GatewayError } from '../../base/errors.ts'
import { isErrorContent } from '../../context/error-response.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import type { ActualUsage } from '../../limits/types.ts'
import { cost } from '../../pricing/cost.ts'
import { settleUsage } from '../../pricing/settle-usage.ts'
import type { MeteredResponse, SettledCost, SettledUsage } from '../../pricing/settle-usage.ts'
import { settleCost, settleCostByModel, mergeCosts, noteCost } from '../../pricing/settled-cost.ts'
import type { AttemptCost } from '../../pricing/settled-cost.ts'
import { priceFor } from '../../pricing/tier-price.ts'
import { withDecompressed } from './decompress.ts'
import { finalRow } from './ledger-row.ts'
import { archiveRecording } from './record-bodies.ts'

/**
 * The last phase: usage to price to ledger, the reservation to its real cost, and
 * one log line, for each exchange, refused ones included. It never throws: of what
 * cannot be settled the draft stands in the ledger, and so does the reservation.
 */
export async function settle(
  gateway: Gateway, exchange: Exchange, failure: GatewayError | null,
): Promise<void> {
  const { endpoint } = exchange.classified
  if (endpoint.ownResponse === 'status') return
  try {
    const { ledger } = gateway.accounts
    const { reservation = null, ledgerEntry = null } = exchange.reserved ?? {}
    exchange.ended = { failure, at: gateway.clock.monotonic() }
    // To count what it used may take a while, in which its key can have another in its place.
    reservation?.releaseConcurrency()
    const billing = exchange.session?.end(failure) ?? costOfExchange(gateway, exchange, failure)
    // Should the process die while it is counted, the ledger tells how it ended.
    if (billing instanceof Promise && ledgerEntry) ledger?.updateDraft(ledgerEntry)
    const bill = billing instanceof Promise ? await billing : billing
    if (exchange.session !== null) noteMixedPrices(exchange, bill)
    const row = finalRow(exchange, bill)
    ledger?.close(row, ledgerEntry)
    if (bill.billed) reservation?.settle(outcomeOf(exchange, bill, row.costPico))
    else reservation?.release()
    archiveRecording(gateway, exchange)
    logLine(gateway, exchange, failure, row, bill.suspect)
  } catch (err) {
    gateway.log.error({ request: exchange.id, err }, 'an exchange could not be settled')
  }
}

/** What the answer is billed; a promise where something has to be counted or unpacked first. */
function costOfExchange(
  gateway: Gateway, exchange: Exchange, failure: GatewayError | null,
): SettledCost | Promise<SettledCost> {
  // Who leaves on an error leaves nothing behind that was still to come.
  const isLeft = failure?.code === 'client_gone' && !isErrorContent(exchange)
  const end = failure === null ? 'complete' : isLeft ? 'client_gone' : 'other'
  const settling = decompressedResponse(gateway, exchange, answer => {
    const settled = settleUsage({
      endpoint: exchange.classified.endpoint,
      end,
      answer,
      request: exchange.prompt,
      abandoned: gateway.config.billing.abandoned,
    }, gateway.accounts.counter)
    const price = (last: SettledUsage) => priced(gateway, exchange, answer, last)
    return settled instanceof Promise ? settled.then(price) : price(settled)
  })
  const whole = (last: SettledCost) => exchange.earlierResponses.length === 0 ? last : withEarlierAttempts(exchange, last)
  return settling instanceof Promise ? settling.then(whole) : whole(settling)
}

/** What an answer costs, at the price of the model and of the tier that it was served by. */
function priced(
  { accounts: { prices } }: Gateway, exchange: Exchange, answer: MeteredResponse | null, settled: SettledUsage,
): SettledCost {
  const { candidate, startedWall } = exchange
  const url = candidate?.upstream.url ?? null
  const priceOf = (model: string) => prices.priceOf(url, model, new Date(startedWall))
  const server = settled.servingModels?.servedBy ?? null
  exchange.quoted = priceFor(server === null ? exchange.quoted : priceOf(server), answer)
  const bill = settleCostByModel(settled, exchange.quoted, priceOf)
  if (settled.servingModels) noteMixedPrices(exchange, bill)
  return bill
}

/** Several prices make up a cost that the row's price does not explain: then its attempt tells it as one. */
function noteMixedPrices({ attempts, quoted }: Exchange, bill: SettledCost): void {
  const last = attempts.at(-1)
  const { billed, costPico, usage } = bill
  if (last && billed && costPico !== null && cost(usage, quoted?.price ?? null) !== costPico) noteCost(last, bill)
}

/** What limits and budgets are told was used; null = nobody knows, and what was set aside stands. */
function outcomeOf({ session }: Exchange, { usage, unread }: SettledCost, pico: bigint | null): ActualUsage {
  const { inputTokens, outputTokens } = usage
  const isCounted = !unread && (inputTokens !== null || outputTokens !== null)
  const tokens = isCounted ? (inputTokens ?? 0) + (outputTokens ?? 0) : null
  return { tokens: tokens ?? session?.knownUsage.tokens ?? null, pico: pico ?? session?.knownUsage.pico ?? null }
}

/** The bill of an answer of which others brought the parts before the last. */
async function withEarlierAttempts({ earlierResponses: earlier, attempts }: Exchange, last: SettledCost): Promise<SettledCost> {
  const parts: AttemptCost[] = []
  for (const { share, quoted, response: answer, record } of earlier) {
    parts.push({ record, bill: settleCost(await share.settled, priceFor(quoted, answer)) })
  }
  return mergeCosts([...parts, { record: attempts.at(-1), bill: last }])
}

/**
 * An answer that came compressed is read unpacked: its usage stands inside. Half of
 * the room is left to requests.
 */
function decompressedResponse<T>(
  gateway: Gateway, exchange: Exchange, read: (answer: MeteredResponse | null) => T | Promise<T>,
): T | Promise<T> {
  const { response: answer, responseEncoding: answerEncoding } = exchange
  if (answer?.kind !== 'body' || answerEncoding === null) return read(answer)
  const { config, sharedState: { bodyMemory: bodies } } = gateway
  const room = config.server.bodyMemory / 2
  return withDecompressed(bodies, room, answer.body, answerEncoding, body => read(body === null
    // That it came is all that is known.
    ? { kind: 'none', delivered: answer.body.length > 0 }
    : { kind: 'body', body }))
}

function logLine(
  gateway: Gateway, exchange: Exchange, failure: GatewayError | null,
  row: LedgerRow, suspect: boolean,
): void {
  const { usage } = row
  const line = {
    request: exchange.id,
    key: row.key ?? undefined,
    client: exchange.clientAddress,
    method: exchange.req.method,
    path: exchange.target.path,
    endpoint: row.endpoint,
    model: row.model ?? undefined,
    upstream: row.upstream ?? undefined,
    attempts: row.attempts.length > 1 ? row.attempts.length : undefined,
    status: exchange.status,
    end: row.end,
    error: row.error ?? undefined,
    first_byte_ms: row.firstByteMs ?? undefined,
    ms: row.durationMs,
    bytes_in: row.bytesIn,
    bytes_out: row.bytesOut,
    input_tokens: usage.inputTokens ?? undefined,
    output_tokens: usage.outputTokens ?? undefined,
    cost_usd: row.costPico === null ? undefined : formatUsd(row.costPico),
  }
  if (suspect) {
    const which = { request: exchange.id, upstream: row.upstream }
    gateway.log.warn(which, 'the upstream reported a usage that cannot be')
  }
  if (failure === null) gateway.log.info(line, 'exchange')
  else if (failure.source === 'client') gateway.log.info({ ...line, why: failure.message }, 'exchange')
  else gateway.log.warn({ ...line, why: failure.message, cause: causeOf(failure) }, 'exchange')
}
