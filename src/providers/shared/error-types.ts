const BY_STATUS: Readonly<Record<number, string>> = {
  401: 'authentication_error', 403: 'permission_error', 404: 'not_found_error', 408: 'timeout_error', 413: 'request_too_large',
  429: 'rate_limit_error', 503: 'overloaded_error', 504: 'timeout_error', 529: 'overloaded_error',
}

/** @param status null = the error came in a stream @returns the type in Anthropic's API */
export function errorType(status: number | null): string {
  return BY_STATUS[status ?? 0] ?? (status === null || status >= 500 ? 'api_error' : 'invalid_request_error')
}
