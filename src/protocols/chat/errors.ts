import type { GatewayError } from '../../base/errors.ts'
import type { Protocol } from '../shared/protocol.ts'

/**
 * The chat-completions family: /v1 except /v1/messages.
 * Error shape: {error:{message,type,param,code}}, as the openai clients read it.
 */
export const chat: Protocol = {
  name: 'chat',
  errorBody: error => JSON.stringify({ error: errorObject(error) }),
  streamError: (error, endpoint) => {
    if (endpoint !== 'responses') return `data: ${JSON.stringify({ error: errorObject(error) })}\n\n`
    // The responses stream names its events; `error` at the top is what openai's client throws on.
    const { message, code, param } = errorObject(error)
    const data = { type: 'error', code, message, param, error: errorObject(error) }
    return `event: error\ndata: ${JSON.stringify(data)}\n\n`
  },
}

function errorObject(error: GatewayError) {
  const { type, code } = kind(error)
  return { message: error.message, type, param: error.param, code }
}

function kind(error: GatewayError): { type: string; code: string } {
  switch (error.code) {
    case 'missing_key':
    case 'invalid_key':
      return { type: 'invalid_request_error', code: 'invalid_api_key' }
    case 'rate_limited':
      return { type: 'rate_limit_error', code: 'rate_limit_exceeded' }
    case 'budget_spent':
      return { type: 'insufficient_quota', code: 'insufficient_quota' }
    case 'model_not_allowed':
      return { type: 'permission_error', code: error.code }
    default:
      return { type: error.status >= 500 ? 'server_error' : 'invalid_request_error', code: error.code }
  }
}
