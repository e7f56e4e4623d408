import type { GatewayError } from '../../base/errors.ts'
import { errorKindOf } from '../neutral/errors.ts'
import { asText } from '../neutral/json.ts'
import type { NeutralError } from '../neutral/response.ts'
import { errorIn } from '../neutral/error-body.ts'
import type { ClientFormat, ModelCard } from '../endpoint/protocol.ts'
import { rateLimitHeaders } from '../endpoint/rate-limit-headers.ts'

/** Events in a stream have the names of the events in Bedrock's binary event stream. */
export const CONVERSE_FORMAT: ClientFormat = {
  protocol: 'converse',
  errorBody: error => JSON.stringify(errorObject(error)),
  streamError: error => `event: error\ndata: ${JSON.stringify(errorObject(error))}\n\n`,
  errorEvent: json => `event: error\ndata: ${json}\n\n`,
  keepAlive: ': keep-alive\n\n',
  modelList: models => JSON.stringify({ modelSummaries: models.map(card) }),
  modelCard: model => JSON.stringify({ modelDetails: card(model) }),
  unmaskedMembers: null,
  requestIdHeader: null,
  isGoogles: false,
  isOpenais: false,
  rateLimitHeaders,
}

function card({ name }: ModelCard) {
  return { modelId: name, modelName: name }
}

function errorObject({ code, message }: GatewayError) {
  return { type: 'error', error: { type: code, message } }
}

/** HTTP statuses for error types in a stream. */
const STATUSES: ReadonlyMap<string, number> = new Map(Object.entries({
  invalid_request_error: 400, permission_error: 403, not_found_error: 404, timeout_error: 408, rate_limit_error: 429, overloaded_error: 503,
}))

/** Reads `{type: "error", error: {type, message}}`. @param status null = an error in a stream */
export function readConverseError(status: number | null, body: unknown): NeutralError {
  const error = errorIn(body) ?? {}
  const type = asText(error['type']) || null
  const actual = status ?? STATUSES.get(type ?? '') ?? 500
  return {
    kind: errorKindOf(actual, type),
    status: actual,
    message: asText(error['message']) ?? `the upstream responded with the status ${actual}`,
    code: type,
    param: null,
  }
}
