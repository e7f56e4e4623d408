import type { ErrorKind } from './response.ts'

/** The code of an error that says that the request is too long for the model: OpenAI's, by which its clients know it. */
export const CONTEXT_LENGTH = 'context_length_exceeded'

/** The kind of an upstream's error, by its status and by the name that it gives itself. */
export function errorKindOf(status: number, name: string | null): ErrorKind {
  if (name !== null && /overloaded/.test(name)) return 'overloaded'
  if (name !== null && /rate_limit/.test(name)) return 'rate_limit'
  if (name !== null && /insufficient_quota|billing/.test(name)) return 'billing'
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
