import type { IncomingMessage } from 'node:http'
import type { Behaviour } from '../behaviour.ts'
import { string, type Json } from '../json.ts'
import { EMPTY_BODY, type SimulatedRequest } from '../request.ts'
import { streamResponse } from '../endpoints/response.ts'
import type { SimulatorContext } from '../simulator-context.ts'
import type { WebSocketProtocol, Reply } from './websocket-session.ts'

/**
 * Serves the responses protocol over a WebSocket. `response.create` contains the same body as POST /v1/responses, and the response has the
 * same events.
 */
export function responsesProtocol(context: SimulatorContext, incoming: IncomingMessage): WebSocketProtocol {
  const error = (status: number, message: string): Json => ({
    type: 'error', status, error: { type: 'invalid_request_error', code: null, message, param: null },
  })
  return {
    initialEvents: () => [],
    reply: (message): Reply => {
      if (message['type'] !== 'response.create') {
        return { kind: 'say', events: [error(400, 'Only response.create is understood.')] }
      }
      const model = string(message['model'])
      const script = (behaviour: Behaviour) =>
        streamResponse(requestOf(context, incoming, message, model, behaviour))
      return { kind: 'play', model, script }
    },
    error,
  }
}

function requestOf(
  context: SimulatorContext, incoming: IncomingMessage, message: Json, model: string, behaviour: Behaviour,
): SimulatedRequest {
  return {
    ...EMPTY_BODY,
    method: 'GET',
    target: incoming.url ?? '',
    path: '/v1/responses',
    query: new URLSearchParams(),
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    family: 'chat',
    json: message,
    model,
    behaviour,
    now: Math.floor(context.now() / 1000),
    requestId: context.id('req_'),
    id: context.id,
  }
}
