import { answerJson } from './answer.ts'
import { GatewayError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import { modelCard, modelList, callerShape } from './protocols/model-list.ts'

/** GET /api/status: is the gateway up, and does it take work? Asked without a credential. */
export function answerStatus(gateway: Gateway, exchange: Exchange): void {
  const { draining, version } = gateway
  const body = { success: !draining, version, status: draining ? 'draining' : 'ok', running: gateway.running.size - 1 }
  answerJson(gateway, exchange, draining ? 503 : 200, JSON.stringify(body), { 'cache-control': 'no-store' })
}

/** GET /v1/models and its kin: what the presented key may use, in the shape that the caller reads. */
export function answerModels(gateway: Gateway, exchange: Exchange): void {
  const { classified, identity, req, target } = exchange
  const shape = callerShape(classified.endpoint.protocol, req.headers, target.queryKey !== null)
  const models = listedModels(gateway).filter(name => identity.allows(name))
  if (classified.endpoint.name === 'models.list') {
    answerJson(gateway, exchange, 200, modelList(shape, models))
    return
  }
  const asked = classified.pathModel as string
  if (!models.includes(asked)) {
    throw new GatewayError('model_not_found', `the model '${asked}' does not exist or the key may not use it`, {
      param: 'model',
    })
  }
  answerJson(gateway, exchange, 200, modelCard(shape, asked))
}

/** The plain names in the routes' model lists, and those under `models` that some route serves. */
function listedModels(gateway: Gateway): string[] {
  const names = new Set<string>()
  for (const route of gateway.config.routes) {
    for (const glob of route.models ?? []) if (!glob.includes('*')) names.add(glob)
  }
  for (const name of gateway.config.models.keys()) if (gateway.routes.servesModel(name)) names.add(name)
  return [...names]
}
