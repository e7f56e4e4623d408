import { GatewayError, asGatewayError, upgradeRequired } from '../base/errors.ts'
import type { Exchange, Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { accept } from './accept.ts'
import { admit, admitParameters } from './admit.ts'
import { forwardUpgrade, type Upgrade } from './attempt/forward-upgrade.ts'
import { COUNT_TOKENS, forward } from './attempt/forward.ts'
import { askHooks } from './ask-hooks.ts'
import { attribute } from './attribute.ts'
import { classify, classifyHandshake } from './classify.ts'
import { sendModels, sendStatus, sendTokenCount } from './gateway-endpoints.ts'
import { sendError, sendHandshakeRefusal } from './gateway-response.ts'
import { editRequest } from './edit-request.ts'
import { fittingRoute } from './fit.ts'
import { identify } from './identify.ts'
import { reserve } from './reserve.ts'
import { plan, route, websocketTargets } from './route.ts'
import { runChecks } from './run-checks.ts'
import { sessionRules } from './session-check.ts'
import { startRecording } from './settle/record-bodies.ts'
import { settle } from './settle/settle.ts'
import { needsHttpForModel } from './upgrade.ts'

/**
 * Runs a request through the phases. Each phase writes fields of the exchange, which later phases read, or throws a `GatewayError`:
 *
 *   accept     is the request well-formed, which endpoint does its path name, and does the gateway have room for the request?
 *   identify   who is calling?
 *   classify   which body and model does the request have, and does it ask for a stream?
 *   attribute  for whom and for what is it, if the configuration asks?
 *   admit      may this key use this model?
 *   route      which targets can serve the request, in which order, at which prices?
 *   checks     what do the rules about texts say, if the configuration has any?
 *   hooks      what do the operator's own services decide, if the configuration has any?
 *   edits      what do rules change, if the configuration has any?
 *   reserve    do the key's limits have room for the worst case?
 *   attempt    which target responds? Targets are tried in order
 *   respond    what does the client get? The response is checked, metered and relayed
 *   settle     what did the request use and cost? The result goes to the ledger, the limits and the log
 *
 * `forward` and `forwardUpgrade` alternate attempt and respond until one response has ended. `handle` never throws.
 * @param upgrade the connection of a WebSocket handshake, with a `res` made by `responseOn`; null = a plain request
 */
export async function handle(gateway: Gateway, exchange: Exchange, upgrade: Upgrade | null): Promise<void> {
  const ticket = gateway.activeExchanges.begin(exchange)
  let failure: GatewayError | null = null
  try {
    failure = upgrade === null ? await serve(gateway, exchange) : await serveUpgrade(gateway, exchange, upgrade)
  } catch (thrown) {
    failure = asGatewayError(thrown)
    sendError(gateway, exchange, failure)
    // A client that disconnects may close only its half of the connection: close the gateway's half too.
    if (failure.code === 'client_gone') upgrade?.socket.destroy()
  } finally {
    const settling = settle(gateway, exchange, failure)
    if (settling) await settling
    exchange.memory.releaseAll()
    exchange.releaseBody()
    gateway.activeExchanges.end(ticket)
  }
}

async function serve(gateway: Gateway, exchange: Writes<'identity' | 'request' | 'attributed' | 'plan' | 'hooks' | 'policy'>): Promise<GatewayError | null> {
  const onClose = () => {
    // After a delivered response, return before the error is created: creating an error takes time.
    if (exchange.delivery.delivered) return
    exchange.stop(new GatewayError('client_gone', 'the client closed the connection'))
  }
  exchange.res.on('close', onClose)
  try {
    accept(gateway, exchange)
    const { endpoint } = exchange.classified
    if (endpoint.ownResponse === 'status') {
      checkMethod(exchange)
      sendStatus(gateway, exchange)
      return null
    }
    const identity = identify(gateway, exchange)
    exchange.identity = identity instanceof Promise ? await identity : identity
    checkMethod(exchange)
    if (endpoint.ownResponse !== null) {
      await sendModels(gateway, exchange)
      return null
    }
    exchange.request = await classify(gateway, exchange)
    if (gateway.attribution !== null) attribute(gateway, gateway.attribution, exchange)
    admit(exchange)
    if (exchange.identity.restricted) admitParameters(exchange)
    const found = route(gateway.routes, exchange)
    exchange.plan = plan(gateway, exchange, found.fit ? await fittingRoute(gateway, exchange, found) : found)
    if (gateway.textChecks !== null) await runChecks(gateway, gateway.textChecks, exchange, exchange.plan.route)
    if (gateway.hooks !== null) await askHooks(gateway, gateway.hooks, exchange, exchange.plan.route)
    if (gateway.edits !== null) await editRequest(gateway, gateway.edits, exchange)
    const reserving = reserve(gateway, exchange, exchange.plan)
    if (reserving) await reserving
    if (gateway.config.log.bodies.length > 0 || exchange.trace?.isSampled) startRecording(gateway, exchange)
    const end = await forward(gateway, exchange, exchange.plan)
    if (end !== COUNT_TOKENS) return end
    await sendTokenCount(gateway, exchange)
    return null
  } finally {
    exchange.res.off('close', onClose)
  }
}

async function serveUpgrade(
  gateway: Gateway, exchange: Writes<'identity' | 'request' | 'attributed' | 'plan' | 'hooks' | 'policy' | 'bytesIn' | 'refusedBy'>, upgrade: Upgrade,
): Promise<GatewayError | null> {
  accept(gateway, exchange)
  // Count `bytesIn` from the end of the handshake; `head` comes after the handshake.
  const before = upgrade.socket.bytesRead - upgrade.head.length
  if (exchange.req.method !== 'GET') {
    throw new GatewayError('method_not_allowed', 'CONNECT is not allowed', { headers: { allow: 'GET, POST' } })
  }
  const identity = identify(gateway, exchange)
  exchange.identity = identity instanceof Promise ? await identity : identity
  exchange.request = classifyHandshake(exchange)
  if (gateway.attribution !== null) attribute(gateway, gateway.attribution, exchange)
  if (needsHttpForModel(gateway, exchange)) throw upgradeRequired()
  admit(exchange)
  if (exchange.identity.restricted) admitParameters(exchange)
  const found = route(gateway.routes, exchange)
  const targets = websocketTargets(found)
  if (targets.length === 0) throw upgradeRequired()
  exchange.plan = plan(gateway, exchange, { ...found, targets }, found.retries + 1)
  if (gateway.textChecks !== null) await runChecks(gateway, gateway.textChecks, exchange, exchange.plan.route, true)
  if (gateway.hooks !== null) await askHooks(gateway, gateway.hooks, exchange, exchange.plan.route, true)
  if (gateway.edits !== null) await editRequest(gateway, gateway.edits, exchange)
  const reserving = reserve(gateway, exchange, exchange.plan, true)
  if (reserving) await reserving
  const end = await forwardUpgrade(gateway, exchange, exchange.plan, upgrade, sessionRules(gateway, exchange, exchange.plan))
  if ('denied' in end) {
    sendHandshakeRefusal(gateway, exchange, end.denied)
    return null
  }
  exchange.bytesIn = upgrade.socket.bytesRead - before
  return end.failure
}

/** @throws GatewayError method_not_allowed, upgrade_required */
function checkMethod({ req, classified, target }: Exchange): void {
  const { methods, session } = classified.endpoint
  const method = req.method ?? ''
  if (session !== null && (session.required || (method === 'GET' && req.headers.upgrade !== undefined))) throw upgradeRequired()
  if (methods.includes(method)) return
  const allow = methods.join(', ')
  throw new GatewayError('method_not_allowed', `${method} is not allowed on ${target.path}; use ${allow}`, { headers: { allow } })
}
