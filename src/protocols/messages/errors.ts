import type { GatewayError } from '../../base/errors.ts'
import { CREATED } from '../endpoint/model-date.ts'
import type { ClientFormat, ModelCard } from '../endpoint/protocol.ts'
import { headersOf, rateLimitHeaders, type RateLimitFigures } from '../endpoint/rate-limit-headers.ts'

/** An error has the shape `{type: "error", error: {type, message}, request_id}`. */
export const MESSAGES_FORMAT: ClientFormat = {
  protocol: 'messages',
  errorBody: (error, requestId) => JSON.stringify(errorObject(error, requestId)),
  // Clients drop events without a name, so the event is named `error`.
  streamError: (error, requestId) => `event: error\ndata: ${JSON.stringify(errorObject(error, requestId))}\n\n`,
  errorEvent: json => `event: error\ndata: ${json}\n\n`,
  keepAlive: 'event: ping\ndata: {"type": "ping"}\n\n',
  modelList: models => JSON.stringify({
    data: models.map(card), has_more: false, first_id: models[0]?.name ?? null, last_id: models.at(-1)?.name ?? null,
  }),
  modelCard: model => JSON.stringify(card(model)),
  unmaskedMembers: null,
  requestIdHeader: 'request-id',
  isGoogles: false,
  isOpenais: false,
  rateLimitHeaders: (figures, nowMs) => [...messagesRateLimitHeaders(figures, nowMs), ...rateLimitHeaders(figures)],
}

function card({ name, context, output }: ModelCard) {
  return {
    type: 'model', id: name, display_name: name, created_at: new Date(CREATED * 1000).toISOString(),
    ...context !== null && { max_input_tokens: context }, ...output !== null && { max_tokens: output },
  }
}

function errorObject(error: GatewayError, requestId: string) {
  const type = ERROR_TYPES.get(error.status) ?? (error.status >= 500 ? 'api_error' : 'invalid_request_error')
  const isThreadRefused = error.code === 'not_translatable' && error.param === 'thread'
  const inner = { type, message: error.message, ...isThreadRefused && { details: THREAD_UNSUPPORTED } }
  return { type: 'error', error: inner, request_id: requestId }
}

/** Sent if the gateway cannot keep a thread: then the tool runners of Anthropic's SDKs send the whole conversation each time. */
const THREAD_UNSUPPORTED = { error_code: 'thread_unsupported_request' }

/** Error types by HTTP status. */
const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'], [402, 'billing_error'], [403, 'permission_error'], [404, 'not_found_error'],
  [408, 'timeout_error'], [413, 'request_too_large'], [429, 'rate_limit_error'], [503, 'overloaded_error'],
  [504, 'timeout_error'], [529, 'overloaded_error'],
])

/** The last second of the year 9999, in ms since 1970: RFC 3339 has no later times. */
const LAST_SECOND = 253_402_300_799_000

const LIMIT_NAMES = {
  requests: {
    limit: 'anthropic-ratelimit-requests-limit', remaining: 'anthropic-ratelimit-requests-remaining',
    reset: 'anthropic-ratelimit-requests-reset',
  },
  tokens: {
    limit: 'anthropic-ratelimit-tokens-limit', remaining: 'anthropic-ratelimit-tokens-remaining',
    reset: 'anthropic-ratelimit-tokens-reset',
  },
} as const

/**
 * Anthropic's headers, as a flat list of names and values. `reset` is an RFC 3339 time, rounded up to the second. Source: Anthropic API
 * documentation, "Rate limits", "Response headers".
 *
 * @param nowMs ms since 1970
 */
export function messagesRateLimitHeaders(figures: RateLimitFigures, nowMs: number): string[] {
  return headersOf(figures, LIMIT_NAMES, ms => instant(nowMs + ms))
}

function instant(ms: number): string {
  const seconds = Math.min(Math.ceil(ms / 1000) * 1000, LAST_SECOND)
  return new Date(seconds).toISOString().replace('.000Z', 'Z')
}
