import type { Identity } from '../auth/keyring.ts'
import { GatewayError } from '../base/errors.ts'
import { everyTarget } from '../config/routes.ts'
import type { Route } from '../config/types.ts'
import type { LocatedRequest } from '../context/exchange.ts'
import { noModelNamed, singleModel } from '../protocols/shared/inspect.ts'
import type { InspectedBody } from '../protocols/shared/inspect.ts'
import type { Classified, Endpoint } from '../protocols/shared/protocol.ts'
import { checkQueryModel } from '../protocols/shared/query.ts'
import { additionalModels, innerRequestModels, nestedModels } from './additional-models.ts'

/**
 * May the key use the models that the request names?
 *
 * @throws GatewayError model_not_allowed, model_ambiguous
 */
export function admit({ identity, classified, target, request: { model, body } }: LocatedRequest): void {
  checkModel(identity, classified.endpoint, model)
  checkModelMatchesPath(classified, target.query, body)
  if (!identity.restricted || body === null) return
  for (const { model, param } of additionalModels(body)) {
    if (!identity.allowsEach(model)) throw modelNotAllowed(model, param)
  }
  if (classified.endpoint.metering !== 'unmetered' || body.json === null) return
  for (const model of nestedModels(body)) {
    const isAllowed = identity.allowsEach(model)
      || (classified.pathModel !== null && identity.allowsEach(model.replace(RESOURCE_PREFIX, '')))
    if (!isAllowed) throw modelNotAllowed(model, 'model')
  }
}

/**
 * May the key use the model at the endpoint?
 *
 * @throws GatewayError model_not_allowed
 */
function checkModel(identity: Identity, { isBatch }: Endpoint, model: string | null): void {
  if (identity.restricted && (model === null || isBatch)) {
    const why = isBatch ? 'a batch may be for any' : 'the request names none'
    throw new GatewayError('model_not_allowed', `the key is limited to some models, and ${why}`)
  }
  if (model !== null && !identity.allows(model)) throw modelNotAllowed(model, 'model')
}

/**
 * LiteLLM's proxy reads a name with commas as a list of models: the key must be allowed to use each. Where no upstream
 * but the simulator gets the name, it is one name.
 *
 * @throws GatewayError model_not_allowed
 */
export function checkModelList({ restricted, allowsEach }: Identity, model: string | null, route: Route): void {
  if (!restricted || model === null || !model.includes(',')) return
  const isForwarded = everyTarget(route).some(target => target.model === null && !target.upstream.simulator)
  if (isForwarded && !allowsEach(model)) throw modelNotAllowed(model, 'model')
}

/** What Google's API puts before the name of a model in a body. */
const RESOURCE_PREFIX = /^(?:.*\/)?(?:models|tunedModels|endpoints)\//

/**
 * Some upstreams prefer the model in the query or in the body to that in the path (LiteLLM's proxy): they have to
 * agree. So do the requests in the body, at Google's API. A body that goes to a deployment is changed to agree.
 *
 * @throws GatewayError model_ambiguous
 */
function checkModelMatchesPath(
  { endpoint, pathModel }: Classified, query: string, body: InspectedBody | null,
): void {
  if (pathModel === null) return
  checkQueryModel(pathModel, query)
  if (body === null || endpoint.modelIn === 'deployment') return
  if (body.model !== null) checkSameModel(pathModel, body.model)
  for (const model of innerRequestModels(body)) checkSameModel(pathModel, model)
}

/** @throws GatewayError model_ambiguous */
function checkSameModel(pathModel: string, named: string): void {
  const isSame = named.endsWith(pathModel)
    && RESOURCE_PREFIX.exec(named)?.[0].length === named.length - pathModel.length
  if (!isSame) singleModel([pathModel, named])
}

/** @param param the request's field that names the model */
function modelNotAllowed(model: string, param: string): GatewayError {
  return new GatewayError('model_not_allowed', `the key may not use the model '${model}'`, { param })
}

/** @throws GatewayError model_required where the endpoint needs a model, and the request names none */
export function checkModelNamed({ modelRequired }: Endpoint, model: string | null): void {
  if (!modelRequired || model !== null) return
  throw noModelNamed()
}
