import type { ErrorKind } from './response.ts'

/** The code of an error for a request that is too long for the model: OpenAI's code, which its clients know. */
export const CONTEXT_LENGTH = 'context_length_exceeded'

/**
 * HTTP statuses of errors that come without one, in a stream or with the status of a success, by their code or type.
 * Sources: OpenAI's guide to error codes and its ResponseError; Codex knows `server_is_overloaded` and `slow_down`.
 */
const STATUSES: ReadonlyMap<string, number> = new Map(Object.entries({
  [CONTEXT_LENGTH]: 400, invalid_prompt: 400, invalid_request_error: 400, bio_policy: 400, cyber_policy: 400, image_content_policy_violation: 400,
  content_filter: 400, content_policy_violation: 400, empty_image_file: 400, failed_to_download_image: 400, image_file_not_found: 400,
  model_not_found: 404, insufficient_quota: 429, usage_not_included: 429, rate_limit_exceeded: 429, rate_limit_error: 429,
  server_is_overloaded: 503, slow_down: 503, overloaded_error: 503, vector_store_timeout: 504,
}))

/**
 * The status of an error that has none.
 *
 * @param names its code and type; a code may be the status itself
 * @returns null = unknown
 */
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

/** The kind of an upstream's error, by its status and its own name. */
export function errorKindOf(status: number, name: string | null): ErrorKind {
  if (name !== null && /overloaded|slow_down/.test(name)) return 'overloaded'
  if (name !== null && /rate_limit/.test(name)) return 'rate_limit'
  if (name !== null && /insufficient_quota|usage_not_included|billing/.test(name)) return 'billing'
  switch (status) {
    case 401:
      return 'authentication'
    case 402:
      return 'billing'
    case 403:
      return 'permission'
    case 404:
      return 'not_found'
    case 408:
    case 504:
      return 'timeout'
    case 413:
      return 'too_large'
    case 429:
      return 'rate_limit'
    case 503:
    case 529:
      return 'overloaded'
    default:
      return status >= 500 ? 'server' : 'invalid_request'
  }
}
