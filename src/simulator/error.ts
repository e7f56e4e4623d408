import type { Behaviour } from './behaviour.ts'
import { event } from './event.ts'
import { json, type CompleteResponse } from './simulated-response.ts'

/** The provider whose format a response has. */
export type Family = 'chat' | 'messages' | 'generate'

/** Thrown for a request that a provider would refuse. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

const CHAT_TYPES: Readonly<Record<number, string>> = {
  402: 'insufficient_quota', 403: 'permission_error', 429: 'rate_limit_error',
}
const CHAT_CODES: Readonly<Record<number, string>> = {
  401: 'invalid_api_key', 402: 'insufficient_quota', 404: 'model_not_found', 429: 'rate_limit_exceeded',
}
const MESSAGES_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error', 401: 'authentication_error', 402: 'billing_error', 403: 'permission_error',
  404: 'not_found_error', 413: 'request_too_large', 429: 'rate_limit_error', 503: 'overloaded_error',
  504: 'timeout_error', 529: 'overloaded_error',
}
const GENERATE_STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 402: 'RESOURCE_EXHAUSTED', 403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND', 413: 'INVALID_ARGUMENT', 429: 'RESOURCE_EXHAUSTED', 500: 'INTERNAL', 503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED', 529: 'UNAVAILABLE',
}

/** The body of an error in the format of the family, as the provider's documentation describes it. */
export function errorBody(family: Family, status: number, message: string, id: string): unknown {
  const refused = status >= 400 && status < 500
  switch (family) {
    case 'chat': {
      const type = CHAT_TYPES[status] ?? (refused ? 'invalid_request_error' : 'server_error')
      return { error: { message, type, param: null, code: CHAT_CODES[status] ?? null } }
    }
    case 'messages': {
      const type = MESSAGES_TYPES[status] ?? (refused ? 'invalid_request_error' : 'api_error')
      return { type: 'error', error: { type, message }, request_id: id }
    }
    case 'generate': {
      const state = GENERATE_STATUSES[status] ?? (refused ? 'INVALID_ARGUMENT' : 'INTERNAL')
      return { error: { code: status, message, status: state } }
    }
  }
}

/** The response to a refused request, in the format of the family. */
export function refusalResponse(family: Family, refusal: Refusal, id: string): CompleteResponse {
  return json(errorBody(family, refusal.status, refusal.message, id), refusal.status, refusal.headers)
}

/**
 * The response to `status`, `retry_after*` and `error_200`. In the generate family, the body also contains the delay of `retry_after`,
 * because Gemini clients read the delay from the body.
 *
 * @param now seconds since 1970
 */
export function faultyResponse(family: Family, behaviour: Behaviour, now: number, id: string): CompleteResponse {
  const { retry_after: seconds, retry_after_ms: ms, retry_after_date: date } = behaviour
  const status = behaviour.status ?? 500
  const headers: Record<string, string> = {}
  if (seconds !== undefined) headers['retry-after'] = String(seconds)
  if (ms !== undefined) headers['retry-after-ms'] = String(ms)
  if (date !== undefined) headers['retry-after'] = new Date((now + date) * 1000).toUTCString()
  const body = errorBody(family, status, `Simulated error ${status}.`, id)
  if (family === 'generate' && seconds !== undefined) {
    const { error } = body as { error: object }
    const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${seconds}s` }
    return json({ error: { ...error, details: [info] } }, behaviour.error_200 ? 200 : status, headers)
  }
  return json(body, behaviour.error_200 ? 200 : status, headers)
}

const OVERLOADED = { chat: 503, messages: 529, generate: 503 } as const

/** The event that reports a failure in the middle of a stream. */
export function errorEvent(family: Family, id: string): string {
  const body = errorBody(family, OVERLOADED[family], 'The simulated model is overloaded.', id)
  return event(body, family === 'messages' ? 'error' : undefined)
}
