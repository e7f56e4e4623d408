import type { Upstream } from '../config/types.ts'
import { limitHeaders } from '../pipeline/reserve.ts'
import type { GatewayHeaders } from '../proxy/headers.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'

/** What the gateway says of itself beside an answer. @param upstream who gave it; null = the gateway did */
export function gatewayHeadersFor(gateway: Gateway, exchange: Exchange, upstream: Upstream | null): GatewayHeaders {
  const own = {
    version: gateway.version,
    requestId: exchange.id,
    limits: limitHeaders(gateway, exchange),
    inConsole: exchange.isManagement,
  }
  return upstream === null ? own : { ...own, served: { upstream, attempts: exchange.attempts.length } }
}
