import type { GatewayError } from '../../base/errors.ts'
import type { Protocol } from '../shared/protocol.ts'

/**
 * The messages family: /v1/messages.
 * Error shape: {type:"error",error:{type,message},request_id}, as the anthropic clients read it.
 */
export const messages: Protocol = {
  name: 'messages',
  errorBody: (error, requestId) => JSON.stringify(errorObject(error, requestId)),
  streamError: (error, _endpoint, requestId) =>
    // Events without a name are dropped by the clients.
    `event: error\ndata: ${JSON.stringify(errorObject(error, requestId))}\n\n`,
}

function errorObject(error: GatewayError, requestId: string) {
  return { type: 'error', error: { type: kind(error.status), message: error.message }, request_id: requestId }
}

function kind(status: number): string {
  switch (status) {
    case 401:
      return 'authentication_error'
    case 402:
      return 'billing_error'
    case 403:
      return 'permission_error'
    case 404:
      return 'not_found_error'
    case 408:
    case 504:
      return 'timeout_error'
    case 413:
      return 'request_too_large'
    case 429:
      return 'rate_limit_error'
    case 503:
    case 529:
      return 'overloaded_error'
    default:
      return status >= 500 ? 'api_error' : 'invalid_request_error'
  }
}
