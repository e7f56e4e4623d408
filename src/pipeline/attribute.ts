import type { Attribution, Attributed } from '../attribution/attribution.ts'
import { GatewayError } from '../base/errors.ts'
import { isRead, type Exchange, type Writes } from './exchange/exchange.ts'

/** For whom and for what is the request? @throws GatewayError attribution_required */
export function attribute(attribution: Attribution, exchange: Writes<'attributed'>): void {
  const attributed = attribution.read(exchange.req.headers, exchange.request.body, exchange.identity.claims)
  exchange.attributed = attributed
  const name = mustTag(exchange) ? attribution.missing(attributed) : null
  if (name !== null) throw required(name, attribution, attributed)
}

/** The console's users cannot tag, and reads of what exists cost nothing. */
function mustTag(exchange: Exchange): boolean {
  return exchange.preAuthenticated === null && !isRead(exchange)
}

function required(name: string, attribution: Attribution, { ignored }: Attributed): GatewayError {
  const note = ignored.length === 0 ? '' : `; ignored: ${ignored.join(', ')}`
  return new GatewayError('attribution_required', `the request needs '${name}': send ${attribution.howToSend(name)}${note}`)
}
