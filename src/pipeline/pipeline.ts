import { presentedKeys } from '../auth/credentials.ts'
import { isCrossSiteRequest } from '../auth/cross-site.ts'
import { ANONYMOUS } from '../auth/keyring.ts'
import { GatewayError, asGatewayError, overloaded, upgradeRequired } from '../base/errors.ts'
import type { Route, Target } from '../config/types.ts'
import type { Exchange } from '../context/exchange.ts'
import type { Gateway } from '../context/gateway.ts'
import { isApiPath } from '../protocols/endpoint.ts'
import { locate } from '../protocols/locate.ts'
import { KEY_HEADERS } from '../protocols/shared/vendor-headers.ts'
import { isNamed } from '../proxy/headers.ts'
import { additionalModels } from './additional-models.ts'
import { checkModelMatchesPath, checkModelList, checkModel, modelNotAllowed, routeFor, unknownPath } from './admit.ts'
import { forward } from './attempt/forward.ts'
import { candidates, reachableCandidates } from './attempt/refusal-targets.ts'
import { classify } from './classify.ts'
import { sendModels, sendStatus } from './gateway-endpoints.ts'
import { sendError } from './gateway-response.ts'
import { reserve } from './reserve.ts'
import { checkpointRow } from './settle/ledger-row.ts'
import { startRecording } from './settle/record-bodies.ts'
import { settle } from './settle/settle.ts'

/**
 * The path of a request, from its first byte to its settlement. Each phase
 * fills in its part of the exchange, and ends in success or in one row of the
 * error table:
 *
 *   identify   who is calling
 *   classify   what is asked: endpoint, body, model, stream
 *   admit      may this key use this model
 *   route      which upstreams serve it
 *   reserve    has the key enough left for the worst case
 *   forward    attempts at them, one after the other; the answer of one is relayed
 *   settle     what it cost, and what the log says of it
 *
 * It never throws.
 */
export async function handle(gateway: Gateway, exchange: Exchange): Promise<void> {
  const ticket = gateway.activeExchanges.begin(exchange)
  const { res } = exchange
  const gone = () => {
    // A response that was delivered closes too; an error costs a stack, which is not for the usual case.
    if (exchange.relay?.delivered) return
    exchange.stop(new GatewayError('client_gone', 'the client closed the connection'))
  }
  res.on('close', gone)
  let failure: GatewayError | null = null
  try {
    failure = await serve(gateway, exchange)
  } catch (thrown) {
    failure = asGatewayError(thrown)
    sendError(gateway, exchange, failure)
  } finally {
    res.off('close', gone)
    await settle(gateway, exchange, failure)
    gateway.sharedState.bodyMemory.release(exchange.bytesHeld)
    gateway.sharedState.bodyMemory.releaseForResponse(exchange.responseBytesHeld)
    exchange.releaseBody()
    gateway.activeExchanges.end(ticket)
  }
}

async function serve(gateway: Gateway, exchange: Exchange): Promise<GatewayError | null> {
  open(gateway, exchange)
  const { endpoint } = exchange.classified
  if (endpoint.ownResponse === 'status') {
    checkMethod(exchange)
    sendStatus(gateway, exchange)
    return null
  }
  identify(gateway, exchange)
  checkMethod(exchange)
  if (endpoint.ownResponse !== null) {
    sendModels(gateway, exchange)
    return null
  }
  await classify(gateway, exchange)
  admit(exchange)
  exchange.route = route(gateway, exchange)
  const order = candidates(gateway, exchange, exchange.route)
  exchange.candidate = order[0] as Target
  const reserving = reserve(gateway, exchange, reachableCandidates(exchange.route, order))
  if (reserving) await reserving
  exchange.ledgerEntry = gateway.accounts.ledger?.open(() => checkpointRow(exchange)) ?? null
  startRecording(gateway, exchange)
  return forward(gateway, exchange, order)
}

/** @throws GatewayError bad_request_target, bad_header, bad_framing, draining, overloaded */
export function open(gateway: Gateway, exchange: Exchange): void {
  const { req } = exchange
  const { target, classified } = locate(req.url ?? '', path => gateway.routes.namesPath(path))
  exchange.target = target
  exchange.classified = classified
  if (req.httpVersion === '1.1' && req.headers.host === undefined) {
    throw new GatewayError('bad_header', 'the request has no Host header')
  }
  // Node gives the first. Whoever stands in front may have gone by another (RFC 9112 section 3.2).
  if (hostLines(req.rawHeaders) > 1) {
    throw new GatewayError('bad_header', 'the request has more than one Host header')
  }
  // Node takes the chunks apart and leaves what was done to the body before: it would go up as it is.
  if ((req.headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    throw new GatewayError('bad_framing', "the only transfer coding that is understood is 'chunked'")
  }
  // Of an HTTP/1.0 client an expectation is to be ignored (RFC 9110 section 10.1.1).
  if (req.headers.expect !== undefined && !exchange.awaitsContinue && req.httpVersion !== '1.0') {
    throw new GatewayError('bad_header', "the only expectation that is met is '100-continue'")
  }
  if (exchange.classified.endpoint.ownResponse === 'status') return
  if (gateway.draining) {
    throw new GatewayError('draining', 'the gateway is shutting down', { headers: { 'retry-after': '1' } })
  }
  // There is no queue: who would have to wait is told so at once.
  const { maxInFlight } = gateway.config.server
  if (gateway.sharedState.activeExchanges.size > maxInFlight) {
    throw overloaded(`${maxInFlight} requests are under way, as many as the gateway takes`)
  }
}

function hostLines(rawHeaders: readonly string[]): number {
  let lines = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (isNamed(rawHeaders[at] as string, 'host')) lines++
  }
  return lines
}

/** Tried again, it would be refused again: the SDKs are told so. */
const NOT_RETRYABLE = { headers: { 'x-should-retry': 'false', 'www-authenticate': 'Bearer' } }

/** @throws GatewayError missing_key, invalid_key; unknown_path where there is nothing to protect */
export function identify(gateway: Gateway, exchange: Exchange): void {
  const { path, queryKey } = exchange.target
  if (exchange.preAuthenticated !== null) {
    exchange.identity = exchange.preAuthenticated
    return
  }
  if (!isApiPath(path) && !gateway.routes.namesPath(path)) throw unknownPath(path)
  const presented = presentedKeys(exchange.req.headers, queryKey)
  for (const key of presented) {
    const identity = gateway.keyring.find(key)
    if (identity) {
      exchange.identity = identity
      return
    }
  }
  if (gateway.config.auth === 'open') {
    if (isCrossSiteRequest(exchange.req.headers)) {
      const why = 'the gateway is open, but not to pages of other sites: they have to send a key'
      throw new GatewayError('missing_key', why, NOT_RETRYABLE)
    }
    exchange.identity = ANONYMOUS
    return
  }
  if (presented.length > 0) throw new GatewayError('invalid_key', 'the API key is not valid', NOT_RETRYABLE)
  const places = `${['Authorization: Bearer', ...KEY_HEADERS.slice(0, -1)].join(', ')} or ${KEY_HEADERS.at(-1)}`
  throw new GatewayError('missing_key', `no API key was sent; send it as ${places}`, NOT_RETRYABLE)
}

/** @throws GatewayError method_not_allowed, upgrade_required */
function checkMethod(exchange: Exchange): void {
  const { req, classified } = exchange
  const { methods, session } = classified.endpoint
  const method = req.method ?? ''
  if (session !== null && (session.required || (method === 'GET' && req.headers.upgrade !== undefined))) {
    throw upgradeRequired()
  }
  if (methods.includes(method)) return
  const allow = methods.join(', ')
  throw new GatewayError(
    'method_not_allowed', `${method} is not allowed on ${exchange.target.path}; use ${allow}`,
    { headers: { allow } },
  )
}

/** @throws GatewayError model_not_allowed, model_ambiguous */
export function admit({ identity, model, classified, target, body }: Exchange): void {
  checkModel(identity, classified.endpoint, model)
  checkModelMatchesPath(classified, target.query, body)
  if (!identity.restricted || body === null) return
  for (const { model, param } of additionalModels(body)) {
    if (!identity.allowsEach(model)) throw modelNotAllowed(model, param)
  }
}

/** @throws GatewayError model_not_found, unknown_path, model_not_allowed */
export function route({ routes }: Gateway, { target, classified, model, identity }: Exchange): Route {
  const found = routeFor(routes, target.path, classified, model)
  checkModelList(identity, model, found)
  return found
}
