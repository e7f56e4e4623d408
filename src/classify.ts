import { GatewayError, overloaded } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import {
  bodyFormat, inspectForm, inspectJson, jsonInspection, modelName, opaqueBody,
} from './protocols/inspect.ts'
import type { InspectedBody } from './protocols/inspect.ts'
import { queryModel } from './protocols/query.ts'
import { decodeBody, hasBody, readBody } from './proxy/body.ts'

/**
 * Reads what the request asks for: its body, its model, whether it wants a stream.
 * Nothing goes upstream before all of it is here and well-formed.
 *
 * @throws GatewayError whatever is wrong with the body, or with its naming of a model
 */
export async function classify(gateway: Gateway, exchange: Exchange): Promise<void> {
  const { classified } = exchange
  const { endpoint } = classified
  exchange.body = await takeBody(gateway, exchange)
  exchange.proceed()
  exchange.model = modelOf(exchange)
  exchange.stream = endpoint.name === 'generate.stream' || (exchange.body?.stream ?? false)
  if (endpoint.modelRequired && exchange.model === null) {
    throw new GatewayError('model_required', "the request must name a 'model'", { param: 'model' })
  }
}

async function takeBody(gateway: Gateway, exchange: Exchange): Promise<InspectedBody | null> {
  const { req, classified } = exchange
  const { endpoint } = classified
  const due = endpoint.body !== 'none' && endpoint.body !== 'any'
  if (!hasBody(req)) {
    if (due) throw new GatewayError('empty_body', 'the request has no body')
    return null
  }
  const contentType = req.headers['content-type'] ?? null
  const encoding = encodingOf(req.headers['content-encoding'])
  const format = bodyFormat(endpoint.body, contentType)
  // A body that comes plain is read while it arrives; a compressed one when it is whole.
  const scan = format === 'json' && encoding === null ? jsonInspection() : null
  const { timeouts } = gateway.config
  const limit = gateway.config.server.bodyLimit
  const hold = (bytes: number) => holdBytes(gateway, exchange, bytes)
  const raw = await readBody(req, {
    limit,
    idle: timeouts.idle,
    clock: gateway.clock,
    total: { endsAt: exchange.startedAt + timeouts.total, ms: timeouts.total },
    ...(exchange.awaitsContinue ? { onWanted: () => exchange.res.writeContinue() } : {}),
    onChunk: chunk => {
      hold(chunk.length)
      scan?.push(chunk)
    },
  })
  exchange.proceed()
  exchange.bytesIn = raw.length
  if (raw.length === 0) {
    if (due) throw new GatewayError('empty_body', 'the request has no body')
    return null
  }
  // What the gateway does not look into, it does not unpack.
  if (format === 'opaque') return opaqueBody(raw)
  const bytes = encoding === null ? raw : await decodeBody(raw, encoding, limit, chunk => {
    exchange.proceed()
    hold(chunk.length)
  })
  exchange.proceed()
  const wire = encoding === null ? null : raw
  if (format === 'form') return inspectForm(bytes, contentType ?? '', wire)
  const json = scan ?? jsonInspection()
  if (!scan) json.push(bytes)
  return inspectJson(json, bytes, wire, endpoint.body !== 'any')
}

/** @throws GatewayError overloaded where all exchanges together would hold more than they may */
function holdBytes(gateway: Gateway, exchange: Exchange, bytes: number): void {
  if (!gateway.lasting.bodies.take(bytes, gateway.config.server.bodyMemory)) {
    throw overloaded('the request bodies under way are as many bytes as the gateway holds')
  }
  exchange.bytesHeld += bytes
}

function modelOf(exchange: Exchange): string | null {
  const { classified, body, target } = exchange
  switch (classified.endpoint.modelIn) {
    case 'path':
      return classified.pathModel === null ? null : modelName(classified.pathModel)
    case 'query':
      return queryModel(target.query)
    case 'body':
      return body?.model ?? null
    case 'none':
      return null
  }
}

function encodingOf(header: string | undefined): string | null {
  const encoding = header?.trim().toLowerCase() ?? ''
  return encoding === '' || encoding === 'identity' ? null : encoding
}
