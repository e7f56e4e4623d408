/** In which clients send a key other than in `Authorization`: Anthropic's, Google's and Azure's. */
export const KEY_HEADERS = ['x-api-key', 'x-goog-api-key', 'api-key'] as const

/** All that may hold a client's key: none of them goes up. */
export const CREDENTIAL_HEADERS = ['authorization', ...KEY_HEADERS] as const
