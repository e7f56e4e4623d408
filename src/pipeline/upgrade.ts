import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Exchange } from './exchange/exchange.ts'
import type { Gateway } from './parts/gateway.ts'

/** A response on a connection that node has handed over for an upgrade. */
export function responseOn(req: IncomingMessage, socket: Duplex): ServerResponse {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket as Socket)
  res.once('finish', () => (socket as Socket).destroySoon())
  return res
}

/**
 * Codex tries a WebSocket first, and names its models only in messages. If routes or the key depend on the model, refuse with 426: Codex
 * then sends the same request at once over plain HTTP, which names the model.
 */
export function needsHttpForModel({ routes }: Gateway, { classified, request: { model }, identity, target }: Exchange): boolean {
  const { path } = target
  if (classified.endpoint.session?.required !== false || !routes.servesPath(path)) return false
  return identity.restricted || (model === null && routes.match(path, null) === null)
}
