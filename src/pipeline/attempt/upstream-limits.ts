import { GatewayError, upstreamRateLimited } from '../../base/errors.ts'
import type { UpstreamLimits } from '../../config/types.ts'
import type { Exchange } from '../../context/exchange.ts'
import type { Gateway } from '../../context/gateway.ts'
import type { Admission, Reservation } from '../../limits/types.ts'

/** Milliseconds after which a client may try again where no time helps: the request is larger than the limit. */
const DEFAULT_WAIT = 60_000

/**
 * Reserves what an attempt may use of the limits of its upstream.
 *
 * @returns the reservation, or why there is no room: then nothing was reserved
 */
export async function reserveAtUpstream(gateway: Gateway, exchange: Exchange, key: UpstreamLimits): Promise<Reservation | GatewayError> {
  return outcomeOf(await admit(gateway, exchange, key))
}

/** The same without waiting for limits that are shared: where these have to be asked, there is no room. */
export function reserveAtOnce(gateway: Gateway, exchange: Exchange, key: UpstreamLimits): Reservation | GatewayError {
  const admission = admit(gateway, exchange, key)
  if (!(admission instanceof Promise)) return outcomeOf(admission)
  void admission.then(late => {
    if (late.ok) late.reservation.release()
  })
  return upstreamRateLimited(DEFAULT_WAIT)
}

function admit(gateway: Gateway, exchange: Exchange, key: UpstreamLimits): Admission | Promise<Admission> {
  const estimate = { tokens: exchange.reserved?.tokens ?? 0, pico: 0n }
  return gateway.accounts.limiter.admit({ key, model: null, estimate })
}

function outcomeOf(admission: Admission): Reservation | GatewayError {
  if (admission.ok) return admission.reservation
  const { which, message, retryAfterMs } = admission.refusal
  return which === 'unavailable' ? new GatewayError('limits_unavailable', message) : upstreamRateLimited(retryAfterMs ?? DEFAULT_WAIT)
}
