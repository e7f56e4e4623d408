import type { Attribution, Attributed } from '../attribution/attribution.ts'
import { GatewayError } from '../base/errors.ts'
import { isRead, type Exchange, type Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'

/** For whom and for what is the request? @throws GatewayError attribution_required */
export function attribute({ hooks }: Gateway, attribution: Attribution, exchange: Writes<'attributed'>): void {
  const attributed = attribution.read(exchange.req.headers, exchange.request.body, exchange.identity.claims, exchange.identity.key?.tags)
  exchange.attributed = attributed
  const name = mustTag(exchange) ? attribution.missing(attributed, hooks === null) : null
  if (name !== null) throw required(name, attribution, attributed)
}

/** Reads user and tags again, with what hooks say. @throws GatewayError attribution_required */
export function attributeWithHooks(attribution: Attribution, exchange: Writes<'attributed'>, tags: ReadonlyMap<string, string>): void {
  if (tags.size > 0) exchange.attributed = attribution.read(exchange.req.headers, exchange.request.body, exchange.identity.claims, exchange.identity.key?.tags, tags)
  if (exchange.attributed === null || !mustTag(exchange)) return
  const name = attribution.missing(exchange.attributed)
  if (name !== null) throw required(name, attribution, exchange.attributed)
}

/** The console's users cannot tag, and reads of what exists cost nothing. */
function mustTag(exchange: Exchange): boolean {
  return exchange.preAuthenticated === null && !isRead(exchange)
}

function required(name: string, attribution: Attribution, { ignored }: Attributed): GatewayError {
  const note = ignored.length === 0 ? '' : `; ignored: ${ignored.join(', ')}`
  return new GatewayError('attribution_required', `the request needs '${name}': send ${attribution.howToSend(name)}${note}`)
}
