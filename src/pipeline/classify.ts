import { GatewayError, overloaded } from '../base/errors.ts'
import type { Exchange, RequestContent, Writes } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'
import { namesModelInMessage } from '../protocols/classify-path.ts'
import { bodyFormat, inspectForm, inspectJson, jsonInspection, modelName, noModelNamed, opaqueBody } from '../protocols/request/inspect.ts'
import type { InspectedBody } from '../protocols/request/inspect.ts'
import type { JsonScan } from '../protocols/json/json-scan.ts'
import type { BodyKind } from '../protocols/endpoint/protocol.ts'
import { checkQueryModel, queryModel } from '../protocols/request/query.ts'
import { decodeBody, hasBody, readBody } from '../proxy/client/read-body.ts'
import { contentCoding } from '../proxy/upstream/response-head.ts'

const MAY_BE_EMPTY: ReadonlySet<BodyKind> = new Set(['none', 'any', 'bytes'])

/** Waits for the whole body, and reads model and `stream` from it. @throws GatewayError empty_body, model_required, body errors */
export function classify(gateway: Gateway, exchange: Writes<'bytesIn' | 'bodyWaitMs'>): RequestContent | Promise<RequestContent> {
  if (!hasBody(exchange.req)) return contentOf(exchange, null)
  return readRequestBody(gateway, exchange).then(body => contentOf(exchange, body))
}

/** @param body null = empty or absent */
function contentOf(exchange: Exchange, body: InspectedBody | null): RequestContent {
  const { endpoint } = exchange.classified
  if (body === null && !MAY_BE_EMPTY.has(endpoint.body)) throw new GatewayError('empty_body', 'the request has no body')
  const model = modelOf(exchange, body)
  if (endpoint.modelRequired && model === null) throw noModelNamed()
  return { model, stream: endpoint.streamsByPath || (body?.stream ?? false), body }
}

/** @throws GatewayError model_ambiguous */
export function classifyHandshake({ target: { path, query }, classified: { pathModel } }: Exchange): RequestContent {
  const named = () => pathModel === null ? queryModel(query) : modelName(pathModel)
  return { model: namesModelInMessage(path) ? null : named(), stream: false, body: null }
}

/** @returns null = empty */
async function readRequestBody(gateway: Gateway, exchange: Writes<'bytesIn' | 'bodyWaitMs'>): Promise<InspectedBody | null> {
  const { req: { headers }, classified: { endpoint } } = exchange
  const contentType = headers['content-type'] ?? null
  const format = bodyFormat(endpoint.body, contentType)
  // Do not decompress an opaque body, because the gateway does not read it.
  const header = format === 'opaque' ? undefined : headers['content-encoding']
  const encoding = header === undefined ? null : contentCoding(header)
  const scan = format === 'json' ? jsonInspection(gateway.attribution !== null) : null
  const startedAt = gateway.clock.monotonic()
  const raw = await receiveBody(gateway, exchange, encoding === null ? scan : null)
  exchange.bodyWaitMs = gateway.clock.monotonic() - startedAt
  exchange.throwIfStopped()
  exchange.bytesIn = raw.length
  if (raw.length === 0) return null
  const bytes = encoding === null ? raw : await decompressBody(gateway, exchange, raw, encoding, scan)
  exchange.throwIfStopped()
  const wire = encoding === null ? null : raw
  if (scan !== null) return inspectJson(scan, bytes, wire, endpoint)
  return format === 'form' ? inspectForm(bytes, contentType ?? '', wire) : opaqueBody(bytes)
}

function receiveBody(gateway: Gateway, exchange: Exchange, scan: JsonScan | null): Promise<Buffer> {
  const { server, timeouts } = gateway.config
  return readBody(exchange.req, {
    limit: server.bodyLimit,
    idle: timeouts.idle,
    clock: gateway.clock,
    total: { endsAt: exchange.startedAt + timeouts.total, ms: timeouts.total },
    owner: exchange,
    onWanted: exchange.awaitsContinue ? () => exchange.res.writeContinue() : undefined,
    onChunk: chunk => {
      if (!exchange.memory.reserve(chunk.length)) throw bodiesUseAllMemory()
      scan?.push(chunk)
    },
  })
}

function decompressBody(gateway: Gateway, exchange: Exchange, raw: Buffer, encoding: string, scan: JsonScan | null): Promise<Buffer> {
  return decodeBody(raw, encoding, gateway.config.server.bodyLimit, chunk => {
    exchange.throwIfStopped()
    if (!exchange.memory.reserve(chunk.length)) throw bodiesUseAllMemory()
    scan?.push(chunk)
  })
}

function bodiesUseAllMemory(): GatewayError {
  return overloaded('the bodies of running requests use all of server.body_memory')
}

function modelOf({ classified, target }: Exchange, body: InspectedBody | null): string | null {
  switch (classified.endpoint.modelIn) {
    case 'path':
    case 'deployment': return classified.pathModel === null ? null : modelName(classified.pathModel)
    case 'query': return queryModel(target.query)
    case 'body':
      if (body?.model && target.query !== '') checkQueryModel(body.model, target.query)
      return body?.model ?? null
    case 'none': return null
  }
}
