import type { Target } from '../../config/types.ts'
import type { QuotedPrice } from '../../pricing/prices.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from './gateway.ts'

/** The price of the target's model; null = unpriced, or there is no model. */
export function quote(gateway: Gateway, exchange: Exchange, target: Target): QuotedPrice | null {
  const model = target.model ?? exchange.request.model
  if (model === null) return null
  const at = new Date(exchange.startedWall)
  return gateway.accounts.prices.priceOf(target.upstream.url, model, at, exchange.request.model ?? model)
}
