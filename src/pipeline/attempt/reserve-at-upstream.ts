import { GatewayError, upstreamRateLimited } from '../../base/errors.ts'
import type { UpstreamLimits } from '../../config/types.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { Reservation } from '../../limits/types.ts'

/** Milliseconds after which a client may try again where no time helps: the request is larger than the limit. */
const DEFAULT_WAIT = 60_000

/**
 * Reserves what an attempt may use of the limits of its upstream.
 *
 * @returns the reservation, or why there is no room: then nothing was reserved
 */
export async function reserveAtUpstream(gateway: Gateway, exchange: Exchange, key: UpstreamLimits): Promise<Reservation | GatewayError> {
  const estimate = { tokens: exchange.reserved?.tokens ?? 0, pico: 0n }
  const admission = await gateway.accounts.limiter.admit({ key, model: null, estimate })
  if (admission.ok) return admission.reservation
  const { which, message, retryAfterMs } = admission.refusal
  return which === 'unavailable' ? new GatewayError('limits_unavailable', message) : upstreamRateLimited(retryAfterMs ?? DEFAULT_WAIT)
}
