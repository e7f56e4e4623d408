import type { GatewayError } from '../../base/errors.ts'
import type { ClientFormat } from '../endpoint/protocol.ts'
import { rateLimitHeaders } from '../endpoint/rate-limit-headers.ts'

/**
 * The format of the generate protocol: /v1beta and /v1/models/{model}:verb. Error shape:
 * {error:{code,message,status,details}}, google.rpc.Status as JSON.
 */
export const GENERATE_FORMAT: ClientFormat = {
  protocol: 'generate',
  errorBody: error => JSON.stringify({ error: errorObject(error) }),
  // A block must start with `data:`; if anything precedes it, the client drops the block.
  streamError: error => `data: ${JSON.stringify({ error: errorObject(error) })}\n\n`,
  errorEvent: json => `data: ${json}\n\n`,
  keepAlive: ': keep-alive\n\n',
  modelList: models => JSON.stringify({ models: models.map(card) }),
  modelCard: model => JSON.stringify(card(model)),
  unmaskedMembers: ['usageMetadata', 'candidates'],
  requestIdHeader: null,
  isGoogles: true,
  isOpenais: false,
  rateLimitHeaders,
}

/** Like generate, except for errors in a stream. */
export const INTERACTION_FORMAT: ClientFormat = {
  ...GENERATE_FORMAT,
  streamError: ({ code, message }) => (
    `event: error\ndata: ${JSON.stringify({ event_type: 'error', error: { code, message } })}\n\n`
  ),
}

function card(id: string) {
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: '001',
    displayName: id,
    supportedGenerationMethods: [
      'generateContent', 'streamGenerateContent', 'countTokens', 'embedContent', 'batchEmbedContents',
    ],
  }
}

function errorObject(error: GatewayError) {
  return {
    code: error.status,
    message: error.message,
    status: statusName(error.status),
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: error.code.toUpperCase(),
        domain: 'model-gateway',
      },
    ],
  }
}

/** Google's name for an HTTP status. */
export function statusName(status: number): string {
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
