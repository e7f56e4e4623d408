import type { Identity } from '../auth/keyring.ts'
import { GatewayError } from '../base/errors.ts'
import { everyTarget } from '../config/sections/routes.ts'
import type { Route } from '../config/types.ts'
import type { Exchange, LocatedRequest } from './exchange/exchange.ts'
import { JsonCursor } from '../protocols/json/cursor.ts'
import { INNER_REQUESTS, singleModel, type InspectedBody } from '../protocols/request/inspect.ts'
import { MODEL_MEMBERS, visitModels } from '../protocols/request/named-models.ts'
import type { Endpoint } from '../protocols/endpoint/protocol.ts'
import { checkQueryModel } from '../protocols/request/query.ts'
import { WatchedKeys, loosely } from '../protocols/json/watched-keys.ts'

/** Checks that the key may use the models that the request names. @throws GatewayError model_not_allowed, model_ambiguous */
export function admit({ identity, classified, target, request: { model, body } }: LocatedRequest): void {
  if (identity.restricted) checkModel(identity, classified.endpoint, model)
  if (classified.pathModel !== null) checkModelMatchesPath(classified.endpoint, classified.pathModel, target.query, body)
  if (!identity.restricted || body === null || body.json === null) return
  const isKnown = classified.endpoint.metering !== 'unmetered'
  visitModels(body.bytes, { isKnown, skipsOwn: true }, ({ model, param }) => {
    checkOtherModel(identity, model, param, classified.pathModel !== null)
  })
}

/** Checks the models in the query and the headers too, because some servers prefer them to the model in the body. */
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

/** @param model null = the server chooses the model @param hasPrefix the name can have the prefix of Google's resource names */
export function checkOtherModel(identity: Identity, model: string | null, param: string, hasPrefix: boolean): void {
  if (model === null) throw new GatewayError('model_not_allowed', `the key is limited to some models, and by '${param}' the server chooses one`, { param })
  if (!identity.allowsEach(hasPrefix ? withoutResourcePrefix(model) : model)) throw modelNotAllowed(model, param)
}

/** @throws GatewayError model_not_allowed */
function checkModel(identity: Identity, { isBatch }: Endpoint, model: string | null): void {
  if (model === null || isBatch) {
    const why = isBatch ? 'a batch may be for any' : 'the request names none'
    throw new GatewayError('model_not_allowed', `the key is limited to some models, and ${why}`)
  }
  if (!identity.allows(model)) throw modelNotAllowed(model, 'model')
}

/** The key must be allowed to use each model of a name with commas, because LiteLLM's proxy reads such a name as a list of models. */
export function checkModelList({ allowsEach }: Identity, model: string, route: Route): void {
  if (!model.includes(',')) return
  const isForwarded = everyTarget(route).some(target => target.model === null && !target.upstream.simulator)
  if (isForwarded && !allowsEach(model)) throw modelNotAllowed(model, 'model')
}

/** The prefix of a model's name in a body of Google's API. */
const RESOURCE_PREFIX = /^(?:.*\/)?(?:models|tunedModels|endpoints)\//

export function withoutResourcePrefix(model: string): string {
  return model.replace(RESOURCE_PREFIX, '')
}

/**
 * The query, the body and the requests inside a body of Google's API must name the model of the path, because LiteLLM's proxy uses their
 * model instead. The body for a deployment is not checked: its model is rewritten. @throws GatewayError model_ambiguous
 */
function checkModelMatchesPath({ modelIn }: Endpoint, pathModel: string, query: string, body: InspectedBody | null): void {
  checkQueryModel(pathModel, query)
  if (body === null || modelIn === 'deployment') return
  if (body.model !== null) checkSameModel(pathModel, body.model)
  for (const model of innerRequestModels(body)) checkSameModel(pathModel, model)
}

/** @throws GatewayError model_ambiguous */
function checkSameModel(pathModel: string, named: string): void {
  const isSame = named.endsWith(pathModel) && RESOURCE_PREFIX.exec(named)?.[0].length === named.length - pathModel.length
  if (!isSame) singleModel([pathModel, named])
}

/** Finds `model` in upper and lower case, because upstreams written in Go ignore the case of member names. */
const MODEL = new WatchedKeys(['model'], ['model'])

function* innerRequestModels({ bytes, json }: InspectedBody): Generator<string, void, undefined> {
  for (const member of INNER_REQUESTS) {
    for (const { start, end } of json?.fields.get(member) ?? []) {
      const cursor = new JsonCursor(bytes, start, end)
      if (cursor.beginObject()) {
        yield* modelsInside(bytes, cursor)
      } else if (cursor.beginArray()) {
        while (cursor.nextElement()) {
          if (cursor.beginObject()) yield* modelsInside(bytes, cursor)
          else cursor.skip()
        }
      }
    }
  }
}

function* modelsInside(bytes: Buffer, cursor: JsonCursor): Generator<string, void, undefined> {
  while (cursor.nextMember()) {
    if (MODEL.find(bytes, cursor.keyStart, cursor.keyEnd) !== null && cursor.isString()) {
      cursor.skip()
      yield String(cursor.parsed())
    } else {
      cursor.skip()
    }
  }
}

function modelNotAllowed(model: string, param: string): GatewayError {
  return new GatewayError('model_not_allowed', `the key may not use the model '${model}'`, { param })
}
