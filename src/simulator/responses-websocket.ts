import type { IncomingMessage } from 'node:http'
import type { Behaviour } from './behaviour.ts'
import type { Dialogue, Reply } from './websocket-session.ts'
import { string, type Json } from './json.ts'
import { UNREAD, type SimulatedRequest } from './request.ts'
import { streamResponse } from './response.ts'
import type { Surroundings } from './simulator-context.ts'

/**
 * The responses protocol over a WebSocket: `response.create` carries the body
 * that POST /v1/responses takes, and its answer is the same sequence of events.
 */
export function responsesDialogue(around: Surroundings, incoming: IncomingMessage): Dialogue {
  const error = (status: number, message: string): Json => ({
    type: 'error', status, error: { type: 'invalid_request_error', code: null, message, param: null },
  })
  return {
    opening: () => [],
    reply: (message): Reply => {
      if (message['type'] !== 'response.create') {
        return { kind: 'say', events: [error(400, 'Only response.create is understood.')] }
      }
      const model = string(message['model'])
      const script = (behaviour: Behaviour) =>
        streamResponse(requestOf(around, incoming, message, model, behaviour))
      return { kind: 'play', model, script }
    },
    error,
  }
}

function requestOf(
  around: Surroundings, incoming: IncomingMessage, message: Json, model: string, behaviour: Behaviour,
): SimulatedRequest {
  return {
    ...UNREAD,
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
    now: Math.floor(around.now() / 1000),
    requestId: around.id('req_'),
    id: around.id,
  }
}
