import { GatewayError } from '../base/errors.ts'
import type { Target } from '../config/types.ts'
import { ANONYMOUS_KEY } from '../context/accounts.ts'
import type { Exchange } from '../context/exchange.ts'
import type { Gateway } from '../context/gateway.ts'
import { retryHeaders } from '../limits/headers.ts'
import type { Admission, Estimate, Refusal } from '../limits/types.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import { isMetered } from '../pricing/settle-usage.ts'
import { highestCost, hasCacheWriteRate } from '../pricing/tier-price.ts'
import { cacheWriteField, estimateItems, estimateRequest } from '../protocols/shared/request-estimate.ts'
import { blankUsage } from '../protocols/shared/usage.ts'

/**
 * Sets aside the worst case that can be known of what the request may use, so
 * that requests under way together cannot overspend. What is not used comes back
 * when the exchange is settled.
 *
 * @param reachable where it may go, and first where it will go first: the dearest decides what is set
 *   aside, and one whose price is unknown leaves it unknown
 * @throws GatewayError rate_limited, budget_spent, model_unpriced
 */
export function reserve(
  gateway: Gateway, exchange: Exchange, reachable: readonly Target[],
): void | Promise<void> {
  const { limiter } = gateway.accounts
  const key = exchange.identity.key ?? ANONYMOUS_KEY
  const quotes = reachable.map(candidate => quote(gateway, exchange, candidate))
  exchange.quoted = quotes[0] ?? null
  const ask = { key, model: exchange.model, estimate: estimate(gateway, exchange, quotes) }
  if (exchange.identity.unlimited) return
  const admission = limiter.admit(ask)
  // Only a limiter that is shared by processes has to be waited for.
  if (!(admission instanceof Promise)) return applyAdmission(exchange, admission)
  return admission.then(later => {
    applyAdmission(exchange, later)
    exchange.throwIfStopped()
  })
}

function applyAdmission(exchange: Exchange, admission: Admission): void {
  if (!admission.ok) throw refusalError(admission.refusal)
  exchange.reservation = admission.reservation
}

/** What the limits of the key look like now, in the headers that the protocol's clients read; flat. */
export function limitHeaders(gateway: Gateway, exchange: Exchange): string[] {
  const { key: own, unlimited } = exchange.identity
  const key = own ?? ANONYMOUS_KEY
  if (unlimited || (key.limits === null && gateway.config.limits === null)) return []
  const figures = gateway.accounts.limiter.rateLimitStates(key, exchange.model)
  return exchange.classified.endpoint.format.rateLimitHeaders(figures, gateway.clock.wall())
}

/** What the candidate's model costs; null = nobody knows, or there is no model. */
export function quote(gateway: Gateway, exchange: Exchange, candidate: Target): QuotedPrice | null {
  const model = candidate.model ?? exchange.model
  if (model === null) return null
  const at = new Date(exchange.startedWall)
  return gateway.accounts.prices.priceOf(candidate.upstream.url, model, at, exchange.model ?? model)
}

function estimate(gateway: Gateway, exchange: Exchange, quotes: readonly (QuotedPrice | null)[]): Estimate {
  const { body, classified: { endpoint } } = exchange
  // A WebSocket: how much it is going to use nobody knows, but that it uses something.
  if (body === null && endpoint.session !== null) {
    return { tokens: 1, pico: exchange.model !== null && quotes.includes(null) ? null : 1n }
  }
  if (!isMetered(endpoint) || body === null) return { tokens: 0, pico: 0n }
  const { inputTokens, mediaTokens, maxOutputTokens, answers } = estimateRequest(endpoint, body.bytes, body.json)
  exchange.estimatedInput = inputTokens
  const input = inputTokens ?? 0
  const { assumedOutput } = gateway.config.billing
  const output = maxOutputTokens ?? assumedOutput * Math.max(1, body.count ?? answers)
  const { characters, images, seconds } = estimateItems(endpoint, body.bytes, body.json, body.count)
  const used = {
    ...blankUsage(), characters, images, seconds,
    inputTokens: input, inputImageTokens: mediaTokens || null, outputTokens: output,
  }
  const write = quotes.some(hasCacheWriteRate) ? cacheWriteField(body.bytes) : null
  // Whether what is no text is written, too, nobody knows.
  const written = [input, input - mediaTokens]
  const usages = write === null ? [used] : written.map(tokens => ({ ...used, [write]: tokens }))
  return { tokens: Math.max(1, input + output), pico: highestCost(usages, quotes) }
}

function refusalError(refusal: Refusal): GatewayError {
  const headers = retryHeaders(refusal)
  switch (refusal.which) {
    case 'budget':
      return new GatewayError('budget_spent', refusal.message, { headers })
    case 'unpriced':
      return new GatewayError('model_unpriced', refusal.message, { headers, param: 'model' })
    default:
      return new GatewayError('rate_limited', refusal.message, { headers })
  }
}
