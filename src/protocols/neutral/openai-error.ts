import { asNumber, asObject, asText } from './json.ts'
import { errorKindOf } from './errors.ts'
import type { JsonObject } from './json.ts'
import type { ErrorKind, NeutralError } from './response.ts'

const ERROR_TYPES: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  authentication: 'invalid_request_error',
  billing: 'insufficient_quota',
  permission: 'permission_error',
  not_found: 'invalid_request_error',
  too_large: 'invalid_request_error',
  rate_limit: 'rate_limit_error',
  server: 'server_error',
  overloaded: 'server_error',
  timeout: 'server_error',
}

/** Reads an error of OpenAI's shape, `{error: {message, type, param, code}}`; other servers' as far as they have it. */
export function readOpenaiError(status: number, body: unknown): NeutralError {
  const value = asObject(body)
  const error = asObject(value?.['error']) ?? value ?? {}
  const code = asText(error['code'])
  const given = asNumber(error['code'])
  const actual = given !== null && given >= 400 && given < 600 ? given : status
  return {
    kind: errorKindOf(actual, code ?? asText(error['type'])),
    status: actual,
    message: asText(error['message']) ?? asText(value?.['error']) ?? asText(value?.['detail']) ?? `the upstream responded with the status ${status}`,
    code: code ?? asText(error['type']),
    param: asText(error['param']),
  }
}

/** Writes the body of an error response. */
export function writeOpenaiError({ kind, message, code, param }: NeutralError): JsonObject {
  return { error: { message, type: ERROR_TYPES[kind], param, code } }
}
