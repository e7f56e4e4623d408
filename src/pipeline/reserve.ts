import { GatewayError } from '../base/errors.ts'
import { ANONYMOUS_KEY } from './parts/accounts.ts'
import type { Plan, Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { retryHeaders } from '../limits/retry-headers.ts'
import type { Admission, LimitRefusal } from '../limits/types.ts'
import { isMetered } from '../pricing/metering.ts'
import { estimate, operatorQuotes, otherQuotes, type RequestEstimate } from './estimate.ts'
import { checkPriceable, hasBudgetFor, limitsUse } from './priceable.ts'
import { checkpointRow } from './settle/ledger-row.ts'
import { canWait, waitForRoom, type RefusedRequest } from './parts/wait-for-room.ts'

type Reserving = 'reserved' | 'refusedBy' | 'ledgerEntry' | 'pendingRoom' | 'waiting' | 'queueWaits'

/**
 * Reserves the worst case, so that running requests together cannot overspend; the unused part is released at settlement.
 * The most expensive target that the operator pays decides; if one is unpriced, the cost is unknown. With `hedge` the prompt counts twice.
 * A request that may wait for room gets `pendingRoom`, and reserves when `forward` has waited.
 * @returns a promise only if several workers share the limiter
 * @throws GatewayError rate_limited, budget_spent, model_unpriced, limits_unavailable, invalid_output_bound
 */
export function reserve(
  gateway: Gateway, exchange: Writes<Reserving>, plan: Plan, isUpgrade = false,
): Promise<void> | null {
  const { identity, request: { model } } = exchange
  if (identity.unlimited) {
    enter(gateway, exchange, estimate(gateway, exchange, plan), null)
    return null
  }
  const key = identity.limited ?? ANONYMOUS_KEY
  const others = hasBudgetFor(key, gateway.config.limits, model) ? otherQuotes(gateway, exchange, plan) : []
  const expected = estimate(gateway, exchange, plan, others)
  if (isUpgrade || !isMetered(exchange.classified.endpoint)) {
    const quotes = operatorQuotes(plan)
    if (quotes.length > 0) checkPriceable(gateway, exchange, [...quotes, ...others.flat()], key, isUpgrade)
  }
  if (expected.fault !== null && limitsUse(key, gateway.config.limits, model)) throw unreadableBound(expected.fault)
  const request = { key, model, estimate: { tokens: expected.tokens, pico: expected.pico } }
  const admission = gateway.accounts.limiter.admit(request)
  if (!(admission instanceof Promise)) {
    if (admission.ok || isUpgrade || !willWait(gateway, exchange, plan, { request, refusal: admission.refusal }, expected)) {
      enter(gateway, exchange, expected, admission)
    }
    return null
  }
  return admission.then(later => {
    if (later.ok || isUpgrade || !willWait(gateway, exchange, plan, { request, refusal: later.refusal }, expected)) {
      enter(gateway, exchange, expected, later)
    }
    exchange.throwIfStopped()
  })
}

/** @returns true = `pendingRoom` waits for room */
function willWait(gateway: Gateway, exchange: Writes<Reserving>, { route }: Plan, refused: RefusedRequest, expected: RequestEstimate): boolean {
  if (!canWait(gateway, route, refused.refusal)) return false
  exchange.pendingRoom = async () => {
    const result = await waitForRoom(gateway, exchange, [refused])
    if ('which' in result) exchange.throwIfStopped()
    enter(gateway, exchange, expected, 'which' in result ? { ok: false, refusal: result } : { ok: true, reservation: result.reservation })
    exchange.throwIfStopped()
  }
  return true
}

/** @param admission null = the key has no limits */
function enter(
  gateway: Gateway, exchange: Writes<Reserving>, { inputTokens, tokens }: RequestEstimate,
  admission: Admission | null,
): void {
  if (admission !== null && !admission.ok) {
    exchange.refusedBy = admission.refusal.which
    throw refusalError(admission.refusal)
  }
  exchange.reserved = { reservation: admission?.reservation ?? null, estimatedInput: inputTokens, tokens }
  exchange.ledgerEntry = gateway.accounts.ledger?.open(() => checkpointRow(exchange)) ?? null
}

/** @param member the member of the request that should bound the output but is not a whole number from 0 on */
export function unreadableBound(member: string): GatewayError {
  return new GatewayError(
    'invalid_output_bound', `'${member}' must be a whole number from 0 on, because the key has limits of tokens or a budget`, { param: member },
  )
}

export function refusalError(refusal: LimitRefusal): GatewayError {
  const headers = retryHeaders(refusal)
  switch (refusal.which) {
    case 'budget': return new GatewayError('budget_spent', refusal.message, { headers })
    case 'unpriced': return new GatewayError('model_unpriced', refusal.message, { headers, param: 'model' })
    case 'unavailable': return new GatewayError('limits_unavailable', refusal.message, { headers })
    default: return new GatewayError('rate_limited', refusal.message, { headers })
  }
}
