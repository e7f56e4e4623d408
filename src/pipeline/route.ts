import { GatewayError } from '../base/errors.ts'
import { everyTarget } from '../config/sections/routes.ts'
import type { Affinity, Route, Target } from '../config/types.ts'
import type { Gateway } from './parts/gateway.ts'
import { quote, type Exchange, type LocatedRequest, type Plan } from './exchange/exchange.ts'
import { classifyPath } from '../protocols/classify-path.ts'
import type { Classified } from '../protocols/endpoint/protocol.ts'
import { headerValue } from '../proxy/http/raw-headers.ts'
import { upstreamPath } from '../proxy/upstream/upstream-address.ts'
import { chooseOrder } from '../routing/choose.ts'
import type { RouteTable } from '../routing/route-table.ts'
import { checkModelList } from './admit.ts'
import { hedgeAfter } from './attempt/hedge.ts'
import { refusalTargets } from './attempt/retry-plan.ts'

/** @throws GatewayError model_not_found, unknown_path, model_not_allowed */
export function route(routes: RouteTable, { target, classified, request: { model }, identity }: LocatedRequest): Route {
  const found = routeFor(routes, target.path, classified, model)
  if (identity.restricted && model !== null) checkModelList(identity, model, found)
  return found
}

export function websocketTargets({ targets }: Pick<Route, 'targets'>): readonly Target[] {
  return targets.filter(({ upstream }) => upstream.websocket)
}

/** @param found route with at least one target that can serve the request @param attempts maximum; absent = as the route allows */
export function plan(gateway: Gateway, exchange: Exchange, found: Route, attempts?: number): Plan {
  const ordered = found.targets.length === 1 ? found.targets : orderedTargets(gateway, exchange, found)
  const order = attempts === undefined ? ordered : ordered.slice(0, attempts)
  const reachable = attempts === undefined ? reachableTargets(found, order) : order
  return {
    route: found,
    order,
    reachable,
    quotes: reachable.map(target => quote(gateway.accounts.prices, exchange, target)),
    hedgeAfter: found.hedgeAfter === null ? null : hedgeAfter(exchange, found.hedgeAfter, found),
  }
}

function orderedTargets(gateway: Gateway, exchange: Exchange, { targets, strategy, affinity }: Route): readonly Target[] {
  return chooseOrder({ targets, strategy }, {
    health: gateway.health,
    random: Math.random,
    model: exchange.request.model,
    affinity: affinity && affinityOf(exchange, affinity),
  })
}

/** @param order at least one target @returns all targets that an attempt can use, in order, then the targets for refused requests */
function reachableTargets(
  { retries, resume, hedgeAfter, on }: Pick<Route, 'retries' | 'resume' | 'hedgeAfter' | 'on'>, order: readonly Target[],
): readonly Target[] {
  // A continuation skips targets that cannot continue, and a hedge skips unhealthy targets: an attempt can use any target.
  const skips = resume === 'continue' || resume === 'continue_or_hold' || hedgeAfter !== null
  // A target whose upstream is at its limit is skipped without counting an attempt.
  const isLimited = order.some(({ upstream }) => upstream.limits !== null)
  const isAnyTried = order.length <= retries + 1 || isLimited || (skips && retries > 0)
  const tried = isAnyTried ? order : order.slice(0, retries + 1)
  const others = refusalTargets({ on })
  return others.size === 0 ? tried : [...tried, ...others.values()]
}

/** The affinity value: requests with the same value go to the same target. null = no value. */
function affinityOf({ identity, req }: Exchange, affinity: Affinity): string | null {
  if (affinity.by === 'key') return identity.key?.name ?? null
  return headerValue(req.rawHeaders, affinity.name) || null
}

/** @throws GatewayError model_not_found, unknown_path */
function routeFor(routes: RouteTable, path: string, classified: Classified, model: string | null): Route {
  const { name } = classified.endpoint
  const found = routes.match(path, model)
  if (found) {
    const isHidden = name === 'other' && everyTarget(found).some(target => isKnownEndpointAtUpstream(target, path, classified))
    if (isHidden) throw unknownPath(path)
    return found
  }
  const isServed = routes.servesPath(path)
  if (model !== null && (name !== 'other' || isServed)) {
    throw new GatewayError('model_not_found', `the model '${model}' does not exist on ${path}`, { param: 'model' })
  }
  throw unknownPath(path, isServed ? ' for a request without a model' : '')
}

/**
 * @returns true = the path is unknown here but is a known endpoint at the upstream, whose url replaces `/v1`: for example `/v1/v1/...` if
 * `/v1` is removed. Such a request would be unmetered, and could use a model that was not checked.
 */
function isKnownEndpointAtUpstream({ upstream }: Target, path: string, { endpoint, pathModel }: Classified): boolean {
  if (upstream.v1 === null) return false
  const there = classifyPath(upstreamPath(upstream, path))
  if (there.endpoint.name !== 'other' || (there.endpoint.isBatch && !endpoint.isBatch)) return true
  return there.pathModel !== null && there.pathModel !== pathModel
}

/** @param to the kind of request that no route serves, for example ` for a request without a model` */
export function unknownPath(path: string, to = ''): GatewayError {
  return new GatewayError('unknown_path', `no route serves ${path}${to}`)
}
