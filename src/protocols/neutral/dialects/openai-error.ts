import { errorIn } from '../error-body.ts'
import { errorKindOf, statusOf } from '../errors.ts'
import { asNumber, asText, type JsonObject } from '../json.ts'
import type { ErrorKind, NeutralError } from '../response.ts'

const ERROR_TYPES: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error', authentication: 'invalid_request_error', billing: 'insufficient_quota',
  permission: 'permission_error', not_found: 'invalid_request_error', too_large: 'invalid_request_error',
  rate_limit: 'rate_limit_error', server: 'server_error', overloaded: 'server_error', timeout: 'server_error',
}

/**
 * Reads `{error: {message, type, param, code}}`. Servers other than OpenAI's may send only some of these members.
 *
 * @param status HTTP status; for 500, the code decides the status
 * @param body parsed JSON, or text if the body is not JSON
 */
export function readOpenaiError(status: number, body: unknown): NeutralError {
  const error = errorIn(body) ?? {}
  const code = asText(error['code']) || null
  const type = asText(error['type']) || null
  const given = asNumber(error['code'])
  const actual = (status === 500 ? statusOf(error['code'], type) : statusOf(given)) ?? status
  return {
    kind: errorKindOf(actual, code ?? type),
    status: actual,
    message: asText(error['message']) ?? `the upstream responded with the status ${status}`,
    code: code ?? type,
    param: asText(error['param']),
  }
}

export function writeOpenaiError({ kind, message, code, param }: NeutralError): JsonObject {
  return { error: { message, type: ERROR_TYPES[kind], param, code } }
}
