import type { Identity } from '../auth/keyring.ts'
import { GatewayError } from '../base/errors.ts'
import { everyTarget } from '../config/sections/routes.ts'
import type { Route } from '../config/types.ts'
import type { Exchange, LocatedRequest } from './exchange/exchange.ts'
import { singleModel } from '../protocols/request/inspect.ts'
import type { InspectedBody } from '../protocols/request/inspect.ts'
import { MODEL_MEMBERS, visitModels } from '../protocols/request/named-models.ts'
import type { Endpoint } from '../protocols/endpoint/protocol.ts'
import { checkQueryModel } from '../protocols/request/query.ts'
import { loosely } from '../protocols/json/watched-keys.ts'
import { innerRequestModels } from './inner-requests.ts'

/**
 * May the key use the models that the request names?
 *
 * @throws GatewayError model_not_allowed, model_ambiguous
 */
export function admit({ identity, classified, target, request: { model, body } }: LocatedRequest): void {
  if (identity.restricted) checkModel(identity, classified.endpoint, model)
  if (classified.pathModel !== null) checkModelMatchesPath(classified.endpoint, classified.pathModel, target.query, body)
  if (!identity.restricted || body === null || body.json === null) return
  const isKnown = classified.endpoint.metering !== 'unmetered'
  visitModels(body.bytes, { isKnown, skipsOwn: true }, ({ model, param }) => {
    checkOtherModel(identity, model, param, classified.pathModel !== null)
  })
}

/**
 * May a key that is limited to some models use those that the query and the headers of a request name? Some servers prefer them to that in the body.
 *
 * @throws GatewayError model_not_allowed
 */
export function admitParameters({ identity, req, target }: Pick<Exchange, 'identity' | 'req' | 'target'>): void {
  for (const [name, value] of new URLSearchParams(target.query)) {
    if (MODEL_NAMES.has(loosely(name))) checkOtherModel(identity, value, name, true)
  }
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined && MODEL_HEADER.test(name)) checkOtherModel(identity, String(value), name, true)
  }
}

const MODEL_NAMES: ReadonlySet<string> = new Set(MODEL_MEMBERS)
/** Headers that name a model, such as `x-model`, `helicone-model-override` and `x-ms-model-mesh-model-name`. */
const MODEL_HEADER = /(?:^|-)(?:model|models|fallbacks)(?:-(?:name|id|override|deployment|group))?$/

/**
 * @param model null = the server chooses it
 * @param hasPrefix the name can have the prefix of Google's resource names
 */
export function checkOtherModel(identity: Identity, model: string | null, param: string, hasPrefix: boolean): void {
  if (model === null) throw new GatewayError('model_not_allowed', `the key is limited to some models, and by '${param}' the server chooses one`, { param })
  if (!identity.allowsEach(hasPrefix ? withoutResourcePrefix(model) : model)) throw modelNotAllowed(model, param)
}

/**
 * May a key that is limited to some models use the model at the endpoint?
 *
 * @throws GatewayError model_not_allowed
 */
function checkModel(identity: Identity, { isBatch }: Endpoint, model: string | null): void {
  if (model === null || isBatch) {
    const why = isBatch ? 'a batch may be for any' : 'the request names none'
    throw new GatewayError('model_not_allowed', `the key is limited to some models, and ${why}`)
  }
  if (!identity.allows(model)) throw modelNotAllowed(model, 'model')
}

/**
 * LiteLLM's proxy reads a name with commas as a list of models: the key must be allowed to use each. If only the
 * simulator gets the name, it is a single name.
 *
 * @throws GatewayError model_not_allowed
 */
export function checkModelList({ allowsEach }: Identity, model: string, route: Route): void {
  if (!model.includes(',')) return
  const isForwarded = everyTarget(route).some(target => target.model === null && !target.upstream.simulator)
  if (isForwarded && !allowsEach(model)) throw modelNotAllowed(model, 'model')
}

/** The prefix of a model's name in a body of Google's API. */
const RESOURCE_PREFIX = /^(?:.*\/)?(?:models|tunedModels|endpoints)\//

/** The name of a model without its resource prefix. */
export function withoutResourcePrefix(model: string): string {
  return model.replace(RESOURCE_PREFIX, '')
}

/**
 * Some upstreams (LiteLLM's proxy) prefer the model in the query or in the body to the one in the path, so they have
 * to agree. The same holds for the requests inside a body at Google's API. A body for a deployment is rewritten to
 * agree.
 *
 * @throws GatewayError model_ambiguous
 */
function checkModelMatchesPath({ modelIn }: Endpoint, pathModel: string, query: string, body: InspectedBody | null): void {
  checkQueryModel(pathModel, query)
  if (body === null || modelIn === 'deployment') return
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
