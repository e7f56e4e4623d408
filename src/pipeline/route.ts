import { GatewayError } from '../base/errors.ts'
import { everyTarget } from '../config/routes.ts'
import type { Affinity, Route, Target } from '../config/types.ts'
import type { Exchange, LocatedRequest, Plan } from '../context/exchange.ts'
import type { Gateway } from '../context/gateway.ts'
import { quote } from '../context/quote.ts'
import { classifyPath } from '../protocols/endpoint.ts'
import type { Classified } from '../protocols/shared/protocol.ts'
import { upstreamPath } from '../proxy/address.ts'
import { chooseOrder } from '../routing/choose.ts'
import type { RouteTable } from '../routing/table.ts'
import { checkModelList } from './admit.ts'
import { refusalTargets } from './attempt/refusal-targets.ts'

/**
 * The route that takes a request.
 *
 * @throws GatewayError model_not_found, unknown_path, model_not_allowed
 */
export function route(routes: RouteTable, { target, classified, request: { model }, identity }: LocatedRequest): Route {
  const found = routeFor(routes, target.path, classified, model)
  checkModelList(identity, model, found)
  return found
}

/** The targets of a route that take WebSockets. */
export function websocketTargets({ targets }: Pick<Route, 'targets'>): readonly Target[] {
  return targets.filter(({ upstream }) => upstream.websocket)
}

/**
 * Where the request may go, in which order, and at which prices.
 *
 * @param found the route, with the targets that can serve it; at least one
 * @param attempts most candidates that are asked one after the other; absent = as the route says
 */
export function plan(gateway: Gateway, exchange: Exchange, found: Route, attempts?: number): Plan {
  const ordered = candidates(gateway, exchange, found)
  const order = attempts === undefined ? ordered : ordered.slice(0, attempts)
  const reachable = attempts === undefined ? reachableCandidates(found, order) : order
  return { route: found, order, quotes: reachable.map(candidate => quote(gateway, exchange, candidate)) }
}

/** The route's targets, in the order in which this exchange is to try them. */
function candidates(gateway: Gateway, exchange: Exchange, { targets, strategy, affinity }: Route): readonly Target[] {
  if (targets.length === 1) return targets
  return chooseOrder({ targets, strategy }, {
    health: gateway.health,
    random: Math.random,
    model: exchange.request.model,
    affinity: affinity && affinityOf(exchange, affinity),
  })
}

/**
 * The candidates that may be asked before the request has its response, and the targets to which the route sends
 * what they refuse.
 *
 * @param order at least one
 * @returns the first of them, and then the others
 */
function reachableCandidates(
  { retries, resume, on }: Pick<Route, 'retries' | 'resume' | 'on'>, order: readonly Target[],
): readonly Target[] {
  // A response is continued by the next candidate that can, so any of them may be asked.
  const isAnyAsked = order.length <= retries + 1 || (resume === 'continue' && retries > 0)
  const asked = isAnyAsked ? order : order.slice(0, retries + 1)
  const others = refusalTargets({ on })
  return others.size === 0 ? asked : [...asked, ...others.values()]
}

/** What the exchange has in common with those that go to the same target; null = nothing. */
function affinityOf({ identity, req }: Exchange, affinity: Affinity): string | null {
  if (affinity.by === 'key') return identity.key?.name ?? null
  const value = req.headers[affinity.name]
  return value === undefined || value === '' ? null : String(value)
}

/**
 * The route that takes a request.
 *
 * @throws GatewayError model_not_found, unknown_path
 */
function routeFor(
  routes: RouteTable, path: string, classified: Classified, model: string | null,
): Route {
  const { name } = classified.endpoint
  const found = routes.match(path, model)
  if (found) {
    const isMore = name === 'other' && everyTarget(found).some(target => isKnownEndpointAtUpstream(target, path, classified))
    if (isMore) throw unknownPath(path)
    return found
  }
  const isServed = routes.servesPath(path)
  if (model !== null && (name !== 'other' || isServed)) {
    throw new GatewayError('model_not_found', `the model '${model}' does not exist on ${path}`, {
      param: 'model',
    })
  }
  throw unknownPath(path, isServed ? ' to a request that names no model' : '')
}

/**
 * Is a path that is not known by name one of the API where that upstream has it: with nothing in the place of
 * /v1, what stands under /v1/v1? It would go there unmetered, and for another model than was looked at.
 */
function isKnownEndpointAtUpstream({ upstream }: Target, path: string, { endpoint, pathModel }: Classified): boolean {
  if (upstream.v1 === null) return false
  const there = classifyPath(upstreamPath(upstream, path))
  if (there.endpoint.name !== 'other' || (there.endpoint.isBatch && !endpoint.isBatch)) return true
  return there.pathModel !== null && there.pathModel !== pathModel
}

/** @param to whom nothing is served there */
export function unknownPath(path: string, to = ''): GatewayError {
  return new GatewayError('unknown_path', `nothing is served at ${path}${to}`)
}
