import { GatewayError } from '../base/errors.ts'
import { ANONYMOUS_KEY } from '../context/accounts.ts'
import type { Exchange, Plan } from '../context/exchange.ts'
import type { Gateway } from '../context/gateway.ts'
import { retryHeaders } from '../limits/retry-headers.ts'
import type { Admission, Estimate, Refusal } from '../limits/types.ts'
import { isMetered } from '../pricing/metering.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import { addCost } from '../pricing/settled-cost.ts'
import { highestCost, hasCacheWriteRate, isPricedByRequest } from '../pricing/tier-price.ts'
import { cacheWriteField, estimateItems, estimateRequest } from '../protocols/shared/request-estimate.ts'
import { blankUsage } from '../protocols/shared/usage.ts'
import { hedgeAfter } from './attempt/hedge.ts'
import { checkPriceable } from './priceable.ts'
import { checkpointRow } from './settle/ledger-row.ts'

/**
 * Reserves the worst case of what the request may use, so that requests in progress together cannot overspend. What is
 * not used is released when the exchange is settled. Then the ledger gets its first draft of the row.
 *
 * The most expensive target of the plan decides the reservation; with an unpriced target it is unknown. On a route with
 * `hedge` the prompt counts twice.
 *
 * @param isUpgrade it is the handshake of a WebSocket
 * @returns null = done: only a limiter that several workers share has to be awaited
 * @throws GatewayError rate_limited, budget_spent, model_unpriced, limits_unavailable
 */
export function reserve(gateway: Gateway, exchange: Exchange, plan: Plan, isUpgrade = false): Promise<void> | null {
  const { identity, request: { model } } = exchange
  const expected = estimate(gateway, exchange, plan.quotes, hedgeAfter(exchange, plan.route) !== null)
  if (identity.unlimited) {
    enter(gateway, exchange, expected, null)
    return null
  }
  const key = identity.limited ?? ANONYMOUS_KEY
  checkPriceable(gateway, exchange, plan, key, isUpgrade)
  const admission = gateway.accounts.limiter.admit({ key, model, estimate: { tokens: expected.tokens, pico: expected.pico } })
  if (!(admission instanceof Promise)) {
    enter(gateway, exchange, expected, admission)
    return null
  }
  return admission.then(later => {
    enter(gateway, exchange, expected, later)
    exchange.throwIfStopped()
  })
}

/** @param admission null = no limit applies to the key */
function enter(gateway: Gateway, exchange: Exchange, { inputTokens, tokens }: RequestEstimate, admission: Admission | null): void {
  if (admission !== null && !admission.ok) {
    exchange.refusedBy = admission.refusal.which
    throw refusalError(admission.refusal)
  }
  exchange.reserved = { reservation: admission?.reservation ?? null, estimatedInput: inputTokens, tokens }
  exchange.ledgerEntry = gateway.accounts.ledger?.open(() => checkpointRow(exchange)) ?? null
}

/** What the request may use at most. */
interface RequestEstimate extends Estimate {
  /** Tokens of the request; null = the body does not tell. */
  readonly inputTokens: number | null
}

/** @param isHedged a second attempt may run beside the first: its prompt is billed too */
function estimate(
  gateway: Gateway, exchange: Exchange, quotes: readonly (QuotedPrice | null)[], isHedged: boolean,
): RequestEstimate {
  const { classified: { endpoint }, request: { body, model } } = exchange
  // A WebSocket will use an unknown amount.
  if (body === null && endpoint.session !== null) {
    const isPriced = model === null && !endpoint.session.required || !quotes.includes(null)
    return { inputTokens: null, tokens: 1, pico: isPriced ? 1n : null }
  }
  if (!isMetered(endpoint) || body === null) {
    const perRequest = quotes.every(isPricedByRequest) ? highestCost([blankUsage()], quotes) : null
    return { inputTokens: null, tokens: 0, pico: perRequest ?? 0n }
  }
  const { inputTokens, mediaTokens, maxOutputTokens, answers } = estimateRequest(endpoint, body.bytes, body.json)
  const input = inputTokens ?? 0
  const { assumedOutput } = gateway.config.billing
  const output = maxOutputTokens ?? assumedOutput * Math.max(1, body.count ?? answers)
  const { characters, images, seconds } = estimateItems(endpoint, body.bytes, body.json, body.count)
  const used = {
    ...blankUsage(), characters, images, seconds,
    inputTokens: input, inputImageTokens: mediaTokens || null, outputTokens: output,
  }
  const write = quotes.some(hasCacheWriteRate) ? cacheWriteField(body.bytes) : null
  // It is unknown whether media are written to the cache too.
  const written = [input, input - mediaTokens]
  const usages = write === null ? [used] : written.map(tokens => ({ ...used, [write]: tokens }))
  const pico = highestCost(usages, quotes)
  if (!isHedged || gateway.config.billing.abandoned === 'none') return { inputTokens, tokens: Math.max(1, input + output), pico }
  const second = highestCost(usages.map(usage => ({ ...usage, outputTokens: 0 })), quotes)
  return { inputTokens, tokens: Math.max(1, 2 * input + output), pico: addCost(pico, second) }
}

function refusalError(refusal: Refusal): GatewayError {
  const headers = retryHeaders(refusal)
  switch (refusal.which) {
    case 'budget':
      return new GatewayError('budget_spent', refusal.message, { headers })
    case 'unpriced':
      return new GatewayError('model_unpriced', refusal.message, { headers, param: 'model' })
    case 'unavailable':
      return new GatewayError('limits_unavailable', refusal.message, { headers })
    default:
      return new GatewayError('rate_limited', refusal.message, { headers })
  }
}
