import type { GatewayError } from '../../base/errors.ts'
import { isErrorContent } from '../exchange/error-response.ts'
import type { Exchange, Writes } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { Session, UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import type { ActualUsage } from '../../limits/types.ts'
import { cost } from '../../pricing/cost.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import { settleUsage } from '../../pricing/settle-usage.ts'
import type { MeteredResponse, SettledUsage } from '../../pricing/settle-usage.ts'
import { settleCost, settleCostByModel, mergeCosts, noteCost } from '../../pricing/settled-cost.ts'
import type { AttemptCost, SettledCost } from '../../pricing/settled-cost.ts'
import { priceFor } from '../../pricing/tier-price.ts'
import { ledgerRow } from './ledger-row.ts'
import { logExchange } from './log-exchange.ts'
import { archiveRecording } from './record-bodies.ts'
import { settleUpstreamLimits } from './settle-upstream-limits.ts'
import { requestFacts, settlementOf } from './telemetry-facts.ts'
import { withDecompressed } from './with-decompressed.ts'

/** The cost of an exchange, and its price. */
interface Bill extends SettledCost {
  readonly quoted: QuotedPrice | null
  /** The model that the upstream of a session named; null = none. */
  readonly model?: string | null
}

/**
 * The last phase, from usage to price to ledger: the reservation is settled at its real cost, and one line is logged.
 * Rejected exchanges are settled too. It never throws: if an exchange cannot be settled, the ledger keeps its last
 * checkpoint, and the limits keep its reservation.
 *
 * @returns null = done; a promise if tokens have to be counted or bodies decompressed
 */
export function settle(gateway: Gateway, exchange: Writes<'ended'>, failure: GatewayError | null): Promise<void> | null {
  const { endpoint } = exchange.classified
  if (endpoint.ownResponse === 'status') return null
  const onError = (err: unknown) => gateway.log.error({ ...exchange.logIds, err }, 'a request could not be settled: its usage or cost may be missing')
  try {
    const { ledgerEntry, servedBy } = exchange
    exchange.ended = { failure, at: gateway.clock.monotonic() }
    // Release concurrency first: counting tokens can take long.
    exchange.reserved?.reservation?.releaseConcurrency()
    for (const { reservation } of exchange.attempts) reservation?.releaseConcurrency()
    const billing = servedBy?.session?.end(failure) ?? costOfExchange(gateway, exchange, failure)
    if (!(billing instanceof Promise)) {
      enter(gateway, exchange, failure, billing)
      return null
    }
    // If the process dies during the count, the ledger shows how the exchange ended.
    if (ledgerEntry) gateway.accounts.ledger?.updateDraft(ledgerEntry)
    return billing.then(bill => enter(gateway, exchange, failure, bill)).catch(onError)
  } catch (err) {
    onError(err)
    return null
  }
}

/** Writes the cost to the ledger, the limits and the log. */
function enter(gateway: Gateway, exchange: Exchange, failure: GatewayError | null, bill: Bill): void {
  const session = exchange.servedBy?.session ?? null
  const reservation = exchange.reserved?.reservation ?? null
  if (session !== null) noteMixedPrices(exchange, bill, bill.quoted)
  const row = ledgerRow(exchange, bill)
  gateway.accounts.ledger?.close(row, exchange.ledgerEntry)
  const used = actualUsage(session, bill, row.costPico)
  if (bill.billed) reservation?.settle(session?.unsettled(used) ?? used)
  else reservation?.release()
  if (exchange.attempts.some(({ reservation: limited }) => limited !== null)) settleUpstreamLimits(exchange, used.tokens, bill.billed)
  report(gateway, exchange, failure, row)
  if (exchange.recording !== null) archiveRecording(gateway, exchange, exchange.recording)
  logExchange(gateway, exchange, failure, row, bill.suspect)
}

/** Reports the row to metrics and traces. */
function report(gateway: Gateway, exchange: Exchange, failure: GatewayError | null, row: LedgerRow): void {
  const { telemetry } = gateway.sharedState
  if (!telemetry) return
  const settlement = settlementOf(exchange, failure, row)
  telemetry.settled(settlement)
  if (!exchange.trace?.isSampled || exchange.ended === null) return
  exchange.trace.end(settlement, requestFacts(exchange, telemetry.sendsContent), exchange.ended.at)
}

/** @returns a promise if something has to be counted or decompressed first */
function costOfExchange(gateway: Gateway, exchange: Exchange, failure: GatewayError | null): Bill | Promise<Bill> {
  // After an error the client had nothing more to wait for, so it did not abandon a response.
  const isLeft = failure?.code === 'client_gone' && !isErrorContent(exchange)
  const end = failure === null ? 'complete' : isLeft ? 'client_gone' : 'other'
  const read = (response: MeteredResponse | null): Bill | Promise<Bill> => {
    const settled = settleUsage({
      endpoint: exchange.meteredEndpoint,
      end,
      response,
      request: exchange.prompt,
      abandoned: gateway.config.billing.abandoned,
    }, gateway.accounts.counter)
    if (settled instanceof Promise) return settled.then(last => priced(gateway, exchange, response, last))
    return priced(gateway, exchange, response, settled)
  }
  const { interruptedAttempts, response, servedBy } = exchange
  const encoding = servedBy?.response?.encoding ?? null
  const isPlain = response?.kind !== 'body' || encoding === null
  // Half of the memory is left for requests.
  const settling = isPlain ? read(response) : withDecompressed(
    gateway.sharedState.bodyMemory, gateway.config.server.bodyMemory / 2, response.body, encoding,
    // Without a body it is only known whether one arrived.
    body => read(body === null ? { kind: 'none', delivered: response.body.length > 0 } : { kind: 'body', body }),
  )
  return interruptedAttempts.length === 0 ? settling : withInterrupted(exchange, interruptedAttempts, settling)
}

/** The cost of a response, at the price of the model and tier that served it. */
function priced(
  { accounts: { prices } }: Gateway, exchange: Exchange, response: MeteredResponse | null, counted: SettledUsage,
): Bill {
  const { servedBy, startedWall } = exchange
  const settled = withoutRepetition(exchange, counted)
  const url = servedBy?.target.upstream.url ?? null
  const priceOf = (model: string) => prices.priceOf(url, model, new Date(startedWall))
  const servedModel = settled.servingModels?.servedBy ?? null
  const quoted = priceFor(servedModel === null ? exchange.quoted : priceOf(servedModel), response)
  const { servingModels } = settled
  if (servingModels === undefined || !settled.billed) return { ...settleCost(settled, quoted), quoted }
  const bill = settleCostByModel(settled, servingModels, quoted, priceOf)
  noteMixedPrices(exchange, bill, quoted)
  return { ...bill, quoted }
}

/** Some protocols repeat the model and more for each text of translated embeddings: only the texts are input. */
function withoutRepetition({ servedBy }: Exchange, settled: SettledUsage): SettledUsage {
  const embeddings = servedBy?.translated?.embeddings ?? null
  const { source, usage } = settled
  if (embeddings === null || source !== 'estimated' || usage.inputTokens === null) return settled
  return { ...settled, usage: { ...usage, inputTokens: Math.min(usage.inputTokens, embeddings.estimatedTokens) } }
}

/** If the cost is the sum of several prices that the row's price does not explain, it is stored with the attempt. */
function noteMixedPrices({ attempts }: Exchange, bill: SettledCost, quoted: QuotedPrice | null): void {
  const last = attempts.at(-1)
  const { billed, costPico, usage } = bill
  if (last && billed && costPico !== null && cost(usage, quoted?.price ?? null) !== costPico) noteCost(last.record, bill)
}

/** The actual usage for limits and budgets; null = unknown, and the reservation stays. */
function actualUsage(session: Session | null, { usage, unread }: SettledCost, pico: bigint | null): ActualUsage {
  const { inputTokens, outputTokens } = usage
  const isCounted = !unread && (inputTokens !== null || outputTokens !== null)
  const tokens = isCounted ? (inputTokens ?? 0) + (outputTokens ?? 0) : null
  return { tokens: tokens ?? session?.knownUsage.tokens ?? null, pico: pico ?? session?.knownUsage.pico ?? null }
}

/** The cost of a response whose first parts came from other attempts. */
async function withInterrupted(
  { attempts }: Exchange, interrupted: readonly UpstreamAttempt[], settling: Bill | Promise<Bill>,
): Promise<Bill> {
  const last = await settling
  const parts: AttemptCost[] = []
  for (const { share, quoted, metered, record } of interrupted) {
    if (share !== null) parts.push({ record, bill: settleCost(await share.settled, priceFor(quoted, metered)) })
  }
  return { ...mergeCosts([...parts, { record: attempts.at(-1)?.record, bill: last }]), quoted: last.quoted }
}
