import { presentedKeys, separateCredentials, separateSecrets } from '../auth/presented-keys.ts'
import { GatewayError, overloaded } from '../base/errors.ts'
import type { Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { GATEWAY_KEY_HEADER } from '../protocols/http/vendor-headers.ts'
import { locate } from '../protocols/locate.ts'
import { withoutKeys } from '../protocols/request/presented-key.ts'

/** Accepts a well-formed request, unless too many are in progress. @throws GatewayError for a malformed request, draining, overloaded */
export function accept(gateway: Gateway, exchange: Writes<'target' | 'classified' | 'presentedKeys' | 'presentedSecrets' | 'credentials'>): void {
  const { req } = exchange
  const { target, classified } = locate(req.url ?? '', path => gateway.routes.namesPath(path))
  // The console has authenticated its own users.
  const keys = exchange.preAuthenticated === null ? presentedKeys(req.headers, target.queryKey) : []
  const hasSeparate = GATEWAY_KEY_HEADER in req.headers && exchange.preAuthenticated === null
  const separate = hasSeparate ? separateCredentials(req.headers) : null
  const secrets = separate === null ? keys : [...keys, ...separateSecrets(separate)]
  exchange.target = target.query === '' ? target : { ...target, query: withoutKeys(target.query, secrets) }
  exchange.classified = classified
  // An own credential of the client is no key.
  exchange.presentedKeys = separate === null ? keys : [separate.gatewayKey].filter(key => key !== '')
  exchange.presentedSecrets = secrets
  exchange.credentials = separate
  if (req.httpVersion === '1.1' && req.headers.host === undefined) throw new GatewayError('bad_header', 'the request has no Host header')
  // Node uses the first Host header. A proxy in front of the gateway may have used another Host header (RFC 9112 section 3.2).
  if (hostLines(req.rawHeaders) > 1) throw new GatewayError('bad_header', 'the request has more than one Host header')
  // Node decodes only the chunked coding: a body in another transfer coding would be sent upstream still encoded.
  if ((req.headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    throw new GatewayError('bad_framing', "the transfer-encoding must be 'chunked'")
  }
  // The Expect header of an HTTP/1.0 client must be ignored (RFC 9110 section 10.1.1).
  if (req.headers.expect !== undefined && !exchange.awaitsContinue && req.httpVersion !== '1.0') {
    throw new GatewayError('expectation_failed', "the Expect header must be '100-continue'")
  }
  if (exchange.classified.endpoint.ownResponse === 'status') return
  if (gateway.draining) throw new GatewayError('draining', 'the gateway is shutting down', { headers: { 'retry-after': '1' } })
  const { maxInFlight } = gateway.config.server
  if (gateway.sharedState.activeExchanges.size > maxInFlight) {
    throw overloaded(`${maxInFlight} requests are running, the limit of server.max_in_flight`)
  }
}

const HOST = 'host'

function hostLines(rawHeaders: readonly string[]): number {
  let lines = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === HOST.length && name.toLowerCase() === HOST) lines++
  }
  return lines
}
