import type { GatewayError } from '../../base/errors.ts'
import type { Protocol } from '../shared/protocol.ts'

/**
 * The generate-content family: /v1beta, /v1/models/{model}:verb and /v1/interactions.
 * Error shape: {error:{code,message,status,details}}, google.rpc.Status as JSON.
 */
export const generate: Protocol = {
  name: 'generate',
  errorBody: error => JSON.stringify({ error: errorObject(error) }),
  streamError: (error, endpoint) => {
    // A block must start with `data:`; anything above it in the block makes the client lose it.
    if (endpoint !== 'interactions') return `data: ${JSON.stringify({ error: errorObject(error) })}\n\n`
    const { code, message } = error
    return `event: error\ndata: ${JSON.stringify({ event_type: 'error', error: { code, message } })}\n\n`
  },
}

function errorObject(error: GatewayError) {
  return {
    code: error.status,
    message: error.message,
    status: kind(error.status),
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: error.code.toUpperCase(),
        domain: 'model-gateway',
      },
    ],
  }
}

function kind(status: number): string {
  switch (status) {
    case 401:
      return 'UNAUTHENTICATED'
    case 402:
    case 429:
      return 'RESOURCE_EXHAUSTED'
    case 403:
      return 'PERMISSION_DENIED'
    case 404:
      return 'NOT_FOUND'
    case 408:
    case 504:
      return 'DEADLINE_EXCEEDED'
    case 503:
    case 529:
      return 'UNAVAILABLE'
    default:
      return status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT'
  }
}
