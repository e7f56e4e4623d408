import type { GatewayError } from '../../base/errors.ts'
import { isErrorContent } from '../exchange/error-response.ts'
import type { Exchange, Writes } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'
import type { Session, UpstreamAttempt } from '../exchange/upstream-attempt.ts'
import type { ActualUsage } from '../../limits/types.ts'
import { cost } from '../../pricing/cost.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import { settleUsage, type MeteredResponse, type SettledUsage } from '../../pricing/settle-usage.ts'
import { settleCost, settleCostByModel, mergeCosts, noteCost, type AttemptCost, type SettledCost } from '../../pricing/settled-cost.ts'
import { priceFor } from '../../pricing/tier-price.ts'
import { ledgerRow } from './ledger-row.ts'
import { paidCost, type PaidCost } from './paid-cost.ts'
import { archiveRecording } from './record-bodies.ts'
import { logExchange, sendToTelemetry } from './report-exchange.ts'
import { tapHooks } from './tap-hooks.ts'
import { withDecompressed } from './with-decompressed.ts'

interface Bill extends SettledCost {
  readonly quoted: QuotedPrice | null
  /** The model that the upstream of a session named. */
  readonly model?: string | null
  /** Who pays, if several attempts made the response. */
  readonly paid?: PaidCost
}

/**
 * The last phase: settles the reservation at the real cost and logs one line, for rejected exchanges too. It never throws: if settling
 * fails, the ledger keeps its last checkpoint, and the limits keep the reservation.
 * @returns a promise if tokens have to be counted or bodies decompressed
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

function enter(gateway: Gateway, exchange: Exchange, failure: GatewayError | null, bill: Bill): void {
  const session = exchange.servedBy?.session ?? null
  const reservation = exchange.reserved?.reservation ?? null
  if (session !== null) noteMixedPrices(exchange, bill, bill.quoted)
  const paid = bill.paid ?? paidOfOne(exchange, bill)
  const row = ledgerRow(exchange, { ...bill, ...paid })
  gateway.accounts.ledger?.close(row, exchange.ledgerEntry)
  const used = actualUsage(session, bill, paid.costPico)
  if (bill.billed) reservation?.settle(session?.unsettled(used) ?? used)
  else reservation?.release()
  if (exchange.attempts.some(({ reservation: limited }) => limited !== null)) settleUpstreamLimits(exchange, used.tokens, bill.billed)
  sendToTelemetry(gateway, exchange, failure, row)
  if (exchange.recording !== null) archiveRecording(gateway, exchange, exchange.recording)
  logExchange(gateway, exchange, failure, row, bill.suspect)
  if (exchange.hooks !== null) tapHooks(exchange, exchange.hooks, row)
}

function paidOfOne(exchange: Exchange, bill: Bill): PaidCost {
  const { servedBy } = exchange
  const paid = paidCost(exchange, [{ attempt: servedBy, ...bill }])
  if (servedBy !== null && paid.billed === 'client') noteCost(servedBy.record, bill)
  return paid
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

/** The cost at the price of the model and tier that served the response. */
function priced({ accounts: { prices } }: Gateway, exchange: Exchange, response: MeteredResponse | null, counted: SettledUsage): Bill {
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

/** A cost that the row's price does not explain, because it is a sum of several prices, is stored with the attempt. */
function noteMixedPrices({ attempts }: Exchange, bill: SettledCost, quoted: QuotedPrice | null): void {
  const last = attempts.at(-1)
  const { billed, costPico, usage } = bill
  if (last && billed && costPico !== null && cost(usage, quoted?.price ?? null) !== costPico) noteCost(last.record, bill)
}

/** Usage for the limits; null values = unknown, and the reservation stays. */
function actualUsage(session: Session | null, { usage, unread }: SettledCost, pico: bigint | null): ActualUsage {
  const { inputTokens, outputTokens } = usage
  const isCounted = !unread && (inputTokens !== null || outputTokens !== null)
  const tokens = isCounted ? (inputTokens ?? 0) + (outputTokens ?? 0) : null
  return { tokens: tokens ?? session?.knownUsage.tokens ?? null, pico: pico ?? session?.knownUsage.pico ?? null }
}

/** The cost of a response whose first parts came from other attempts. */
async function withInterrupted(
  exchange: Exchange, interrupted: readonly UpstreamAttempt[], settling: Bill | Promise<Bill>,
): Promise<Bill> {
  const { attempts, servedBy } = exchange
  const last = await settling
  const parts: (AttemptCost & { readonly attempt: UpstreamAttempt | null })[] = []
  for (const attempt of interrupted) {
    const { share, quoted, metered, record } = attempt
    if (share !== null) parts.push({ attempt, record, bill: settleCost(await share.settled, priceFor(quoted, metered)) })
  }
  parts.push({ attempt: servedBy, record: attempts.at(-1)?.record, bill: last })
  return { ...mergeCosts(parts), quoted: last.quoted, paid: paidCost(exchange, parts.map(({ attempt, bill }) => ({ attempt, ...bill }))) }
}

/** @param tokens of the whole exchange; null = unknown, and the reservations stay @param isBilled something was used */
function settleUpstreamLimits({ attempts, servedBy }: Exchange, tokens: number | null, isBilled: boolean): void {
  let rest = tokens
  for (const attempt of attempts) {
    const { share, reservation } = attempt
    // Unbilled usage is not part of the tokens.
    if (share === null || !share.reported.billed) continue
    const used = tokensOf(share.reported)
    reservation?.settle({ tokens: used, pico: 0n })
    rest = rest === null || used === null ? null : Math.max(0, rest - used)
  }
  // A reservation that is already settled does not change.
  for (const attempt of attempts) {
    if (attempt === servedBy && isBilled) attempt.reservation?.settle({ tokens: rest, pico: 0n })
    else attempt.reservation?.release()
  }
}

function tokensOf({ usage: { inputTokens, outputTokens } }: Pick<SettledCost, 'usage'>): number | null {
  return inputTokens === null && outputTokens === null ? null : (inputTokens ?? 0) + (outputTokens ?? 0)
}
