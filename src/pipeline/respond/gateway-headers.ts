import type { Upstream } from '../../config/types.ts'
import { isUnlimited } from '../../limits/types.ts'
import type { GatewayHeaders } from '../../proxy/upstream/headers.ts'
import { queuedMs } from '../parts/wait-for-room.ts'
import { ANONYMOUS_KEY } from '../parts/accounts.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { Gateway } from '../parts/gateway.ts'

/** @param upstream null = the gateway itself responds */
export function gatewayHeadersFor(gateway: Gateway, exchange: Exchange, upstream: Upstream | null): GatewayHeaders {
  const own = {
    version: gateway.version,
    requestId: exchange.id,
    limits: limitHeaders(gateway, exchange),
    inConsole: exchange.isManagement,
    queuedMs: exchange.waiting === null && exchange.queueWaits.length === 0 ? 0 : queuedSoFar(gateway, exchange),
  }
  if (upstream === null) return own
  // Hide the number of attempts too, because it shows how healthy the operator's upstreams are.
  const isRevealed = gateway.config.server.revealUpstream || exchange.isOperator
  return { ...own, served: { upstream, attempts: isRevealed ? exchange.attempts.length : null }, translated: exchange.servedBy?.translated?.translator ?? null, dropped: exchange.servedBy?.record.dropped ?? [] }
}

/** ms in queues, including a wait that has not ended when the first keep-alive event is sent. */
function queuedSoFar({ clock }: Gateway, exchange: Exchange): number {
  return queuedMs(exchange) + (exchange.waiting === null ? 0 : clock.monotonic() - exchange.waiting.since)
}

/** The state of the key's limits; flat. */
function limitHeaders(gateway: Gateway, exchange: Exchange): string[] {
  const { limited: key = ANONYMOUS_KEY, unlimited } = exchange.identity
  if (unlimited || isUnlimited(key, gateway.config.limits)) return []
  const states = gateway.accounts.limiter.rateLimitStates(key, exchange.request.model)
  return exchange.classified.endpoint.format.rateLimitHeaders(states, gateway.clock.wall())
}
