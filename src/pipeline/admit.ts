import type { Identity } from '../auth/keyring.ts'
import { GatewayError } from '../base/errors.ts'
import { everyTarget } from '../config/targets.ts'
import type { Route, Target } from '../config/types.ts'
import { classifyPath } from '../protocols/endpoint.ts'
import { singleModel } from '../protocols/shared/inspect.ts'
import type { InspectedBody } from '../protocols/shared/inspect.ts'
import type { Classified, Endpoint } from '../protocols/shared/protocol.ts'
import { checkQueryModel } from '../protocols/shared/query.ts'
import { upstreamPath } from '../proxy/address.ts'
import type { RouteTable } from '../routing/table.ts'

/**
 * May the key use the model at the endpoint?
 *
 * @throws GatewayError model_not_allowed
 */
export function checkModel(identity: Identity, { isBatch }: Endpoint, model: string | null): void {
  if (identity.restricted && (model === null || isBatch)) {
    const why = isBatch ? 'a batch may be for any' : 'the request names none'
    throw new GatewayError('model_not_allowed', `the key is limited to some models, and ${why}`)
  }
  if (model !== null && !identity.allows(model)) throw modelNotAllowed(model, 'model')
}

/**
 * To LiteLLM's proxy commas in a name stand between several models: a key may need each of them. It is one name
 * where only the simulator gets it, which has its behaviours there, or nobody does.
 *
 * @throws GatewayError model_not_allowed
 */
export function checkModelList({ restricted, allowsEach }: Identity, model: string | null, route: Route): void {
  if (!restricted || model === null || !model.includes(',')) return
  const isTold = everyTarget(route).some(target => target.model === null && !target.upstream.simulator)
  if (isTold && !allowsEach(model)) throw modelNotAllowed(model, 'model')
}

/** How Google's API names a model in a body, in front of what its path has. */
const RESOURCE = /^(?:.*\/)?(?:models|tunedModels|endpoints)\/$/

/**
 * Some read the model from the query or the body before the path (LiteLLM's proxy): they have to agree. The
 * body that goes to a deployment is made to.
 *
 * @throws GatewayError model_ambiguous
 */
export function checkModelMatchesPath(
  { endpoint, pathModel }: Classified, query: string, body: InspectedBody | null,
): void {
  if (pathModel === null) return
  checkQueryModel(pathModel, query)
  const other = body?.model ?? null
  if (other === null || endpoint.modelIn === 'deployment') return
  const isSame = other.endsWith(pathModel) && RESOURCE.test(other.slice(0, -pathModel.length))
  if (!isSame) singleModel([pathModel, other])
}

/** @param param the request's field that names the model */
export function modelNotAllowed(model: string, param: string): GatewayError {
  return new GatewayError('model_not_allowed', `the key may not use the model '${model}'`, { param })
}

/**
 * The route that takes a request.
 *
 * @throws GatewayError model_not_found, unknown_path
 */
export function routeFor(
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

/** The endpoint needs a model. */
export function modelRequired(): GatewayError {
  return new GatewayError('model_required', "the request must name a 'model'", { param: 'model' })
}
