import { GatewayError, overloaded } from '../base/errors.ts'
import type { Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { spliceBytes, type Edit } from '../protocols/json/splice.ts'
import { inspectJson, jsonInspection } from '../protocols/request/inspect.ts'

/**
 * Replaces parts of a JSON body before the request is counted and sent. The new body is inspected like that of a client.
 * @throws GatewayError body_too_large, overloaded, invalid_json; model_ambiguous if the edits change the model, or whether it is a stream
 */
export function replaceBody(gateway: Gateway, exchange: Writes<'request'>, edits: readonly Edit[]): void {
  const { request, memory, classified: { endpoint } } = exchange
  const { body } = request
  if (edits.length === 0 || body === null || body.json === null) return
  const added = edits.reduce((sum, { start, end, bytes }) => sum + bytes.length - (end - start), 0)
  if (body.bytes.length + added > gateway.config.server.bodyLimit) {
    throw new GatewayError('body_too_large', 'with the changes of the operator\'s rules, the body is larger than server.body_limit')
  }
  if (!memory.reserve(body.bytes.length + Math.max(0, added))) throw overloaded('the bodies of running requests use all of server.body_memory')
  const bytes = spliceBytes(body.bytes, edits)
  const scan = jsonInspection(gateway.attribution !== null)
  scan.push(bytes)
  const inspected = inspectJson(scan, bytes, body.wire, endpoint)
  if (inspected.model !== body.model || inspected.stream !== body.stream) {
    throw new GatewayError('model_ambiguous', 'the route is chosen already: rules cannot change the model, or whether the response is a stream')
  }
  exchange.request = { ...request, body: { ...inspected, isEdited: true } }
}
