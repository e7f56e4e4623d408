import type { Exchange, Plan } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { isUnmetered } from '../pricing/metering.ts'
import type { QuotedPrice } from '../pricing/prices.ts'
import { visitModels } from '../protocols/request/named-models.ts'
import { withoutResourcePrefix } from './admit.ts'

/**
 * The prices of the models that a request names in addition to its own, at each target that it can reach.
 *
 * @returns for each target, in the order of the plan; null = unpriced, or the server chooses the model
 */
export function otherQuotes(gateway: Gateway, exchange: Exchange, { reachable }: Plan): (QuotedPrice | null)[][] {
  const { classified: { endpoint }, request: { body, model: own }, startedWall } = exchange
  const names = new Set<string | null>()
  if (body?.json) {
    visitModels(body.bytes, { isKnown: !isUnmetered(endpoint), skipsOwn: true }, ({ model }) => {
      const name = model === null ? null : withoutResourcePrefix(model)
      if (name !== own) names.add(name)
    })
  }
  const at = new Date(startedWall)
  return reachable.map(({ upstream: { url } }) => (
    [...names].map(name => name === null ? null : gateway.accounts.prices.priceOf(url, name, at, name))
  ))
}
