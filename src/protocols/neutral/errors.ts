import type { ErrorKind } from './response.ts'

/** OpenAI's code for a request that is too long for the model. */
export const CONTEXT_LENGTH = 'context_length_exceeded'

/**
 * HTTP statuses by code or type, for errors inside a stream, or in a response with a 2xx status.
 * Sources: OpenAI's guide to error codes and its ResponseError; Codex knows `server_is_overloaded` and `slow_down`.
 */
const STATUSES: ReadonlyMap<string, number> = new Map(Object.entries({
  [CONTEXT_LENGTH]: 400, invalid_prompt: 400, invalid_request_error: 400, bio_policy: 400, cyber_policy: 400, image_content_policy_violation: 400,
  content_filter: 400, content_policy_violation: 400, empty_image_file: 400, failed_to_download_image: 400, image_file_not_found: 400,
  model_not_found: 404, insufficient_quota: 429, usage_not_included: 429, rate_limit_exceeded: 429, rate_limit_error: 429,
  server_is_overloaded: 503, slow_down: 503, overloaded_error: 503, vector_store_timeout: 504,
}))

/** The status of an error without an HTTP status. @param names code and type; a code may be a status @returns null = unknown */
export function statusOf(...names: readonly unknown[]): number | null {
  for (const name of names) {
    const given = Number(name)
    if (Number.isInteger(given) && given >= 400 && given < 600) return given
    if (typeof name !== 'string') continue
    const known = STATUSES.get(name)
    if (known !== undefined) return known
    if (/^invalid_.*image|^image_|^unsupported_image/.test(name)) return 400
  }
  return null
}

const KINDS: ReadonlyMap<number, ErrorKind> = new Map([
  [401, 'authentication'], [402, 'billing'], [403, 'permission'], [404, 'not_found'], [408, 'timeout'], [413, 'too_large'],
  [429, 'rate_limit'], [503, 'overloaded'], [504, 'timeout'], [529, 'overloaded'],
])

/** @param status HTTP status @param name the code or the type of the upstream's error */
export function errorKindOf(status: number, name: string | null): ErrorKind {
  if (name !== null && /overloaded|slow_down/.test(name)) return 'overloaded'
  if (name !== null && /rate_limit/.test(name)) return 'rate_limit'
  if (name !== null && /insufficient_quota|usage_not_included|billing/.test(name)) return 'billing'
  return KINDS.get(status) ?? (status >= 500 ? 'server' : 'invalid_request')
}
