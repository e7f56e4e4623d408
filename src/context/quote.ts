import type { Target } from '../config/types.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'

/** What the candidate's model costs; null = nobody knows, or there is no model. */
export function quote(gateway: Gateway, exchange: Exchange, candidate: Target): QuotedPrice | null {
  const model = candidate.model ?? exchange.request.model
  if (model === null) return null
  const at = new Date(exchange.startedWall)
  return gateway.accounts.prices.priceOf(candidate.upstream.url, model, at, exchange.request.model ?? model)
}
