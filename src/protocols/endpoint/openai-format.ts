import type { GatewayError } from '../../base/errors.ts'
import { CREATED } from './model-date.ts'
import type { ClientFormat, ModelCard } from './protocol.ts'
import { rateLimitHeaders } from './rate-limit-headers.ts'

/** The format of OpenAI's protocols. An error has the shape `{error: {message, type, param, code}}`. */
export const OPENAI_FORMAT: ClientFormat = {
  protocol: 'chat',
  errorBody: error => JSON.stringify({ error: errorObject(error) }),
  streamError: error => `data: ${JSON.stringify({ error: errorObject(error) })}\n\n`,
  errorEvent: json => `data: ${json}\n\n`,
  keepAlive: ': keep-alive\n\n',
  modelList: models => JSON.stringify({ object: 'list', data: models.map(card) }),
  modelCard: model => JSON.stringify(card(model)),
  unmaskedMembers: ['usage', 'choices'],
  requestIdHeader: 'x-request-id',
  isGoogles: false,
  isOpenais: true,
  rateLimitHeaders,
}

function card({ name, context, output }: ModelCard) {
  return {
    id: name, object: 'model', created: CREATED, owned_by: 'gateway',
    ...context !== null && { context_window: context }, ...output !== null && { max_output_tokens: output },
  }
}

export function errorObject(error: GatewayError) {
  const { type, code } = kind(error)
  return { message: error.message, type, param: error.param, code }
}

function kind(error: GatewayError): { type: string; code: string } {
  switch (error.code) {
    case 'missing_key':
    case 'invalid_key': return { type: 'invalid_request_error', code: 'invalid_api_key' }
    case 'rate_limited': return { type: 'rate_limit_error', code: 'rate_limit_exceeded' }
    case 'upstream_rate_limited': return { type: 'rate_limit_error', code: error.code }
    case 'budget_spent': return { type: 'insufficient_quota', code: 'insufficient_quota' }
    case 'model_not_allowed': return { type: 'permission_error', code: error.code }
    default: return { type: error.status >= 500 ? 'server_error' : 'invalid_request_error', code: error.code }
  }
}
