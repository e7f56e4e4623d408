import type { GatewayError } from '../../base/errors.ts'
import { CREATED } from '../endpoint/model-date.ts'
import type { ClientFormat } from '../endpoint/protocol.ts'
import { rateLimitHeaders } from '../endpoint/rate-limit-headers.ts'
import { messagesRateLimitHeaders } from './rate-limit-headers.ts'

/**
 * The format of the messages protocol: /v1/messages. Error shape: {type:"error",error:{type,message},request_id}, as
 * Anthropic's clients read it.
 */
export const MESSAGES_FORMAT: ClientFormat = {
  protocol: 'messages',
  errorBody: (error, requestId) => JSON.stringify(errorObject(error, requestId)),
  // Clients drop events without a name.
  streamError: (error, requestId) => `event: error\ndata: ${JSON.stringify(errorObject(error, requestId))}\n\n`,
  errorEvent: json => `event: error\ndata: ${json}\n\n`,
  keepAlive: 'event: ping\ndata: {"type": "ping"}\n\n',
  modelList: models => JSON.stringify({
    data: models.map(card),
    has_more: false,
    first_id: models[0] ?? null,
    last_id: models.at(-1) ?? null,
  }),
  modelCard: model => JSON.stringify(card(model)),
  unmaskedMembers: null,
  requestIdHeader: 'request-id',
  isGoogles: false,
  isOpenais: false,
  rateLimitHeaders: (figures, nowMs) => [...messagesRateLimitHeaders(figures, nowMs), ...rateLimitHeaders(figures)],
}

function card(id: string) {
  return { type: 'model', id, display_name: id, created_at: new Date(CREATED * 1000).toISOString() }
}

function errorObject(error: GatewayError, requestId: string) {
  const inner = { type: kind(error.status), message: error.message, ...isThreadRefused(error) && { details: THREAD_UNSUPPORTED } }
  return { type: 'error', error: inner, request_id: requestId }
}

/** Anthropic's error for a thread that cannot be kept: the SDKs' tool runners then send the whole conversation each time. */
const THREAD_UNSUPPORTED = { error_code: 'thread_unsupported_request' }

function isThreadRefused({ code, param }: GatewayError): boolean {
  return code === 'not_translatable' && param === 'thread'
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
