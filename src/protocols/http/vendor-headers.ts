/** Headers other than `Authorization` in which clients send a key: those of Anthropic, Google and Azure. */
export const KEY_HEADERS = ['x-api-key', 'x-goog-api-key', 'api-key'] as const

/** All headers that may hold a client's key: none of them is sent upstream. */
export const CREDENTIAL_HEADERS: readonly string[] = [
  'authorization', ...KEY_HEADERS,
  // Other spellings: the gateway reads no key from them, but a client may send one.
  ...KEY_HEADERS.map(name => name.replaceAll('-', '_')), 'apikey', 'x-apikey', 'x_apikey',
]

/** The version header of the messages protocol, by either name: the upstream may use the other one. */
export const VERSION_HEADERS: ReadonlySet<string> = new Set(['anthropic-version', 'vendorb-version'])

/** Headers with the URL for the bytes of a started upload at Google: the URL may contain the key of the starting request. */
export const UPLOAD_ADDRESS_HEADERS: ReadonlySet<string> = new Set(['x-goog-upload-url', 'x-goog-upload-control-url'])

/** Rate limits, as OpenAI and Anthropic name them. */
export const RATE_LIMIT_HEADER = /^(x-ratelimit-|anthropic-ratelimit-)/

/**
 * Headers that name the operator's account at the vendor: OpenAI's organization and project, Anthropic's
 * organization, Azure's deployment, and what another gateway says about its operator.
 */
export const ACCOUNT_HEADER =
  /(?:^|-)(?:organization|org|project|workspace|account|tenant|subscription|team|deployment)(?:-(?:id|name|slug))?$|^x-litellm-/

/** Headers with which a client chooses one of the credential's accounts: an upstream may refuse the choice with 401. */
export const ACCOUNT_CHOICE_HEADERS = ['openai-organization', 'openai-project', 'x-goog-user-project'] as const

/** Browsers cannot set headers on a WebSocket; OpenAI's realtime client sends the key as a subprotocol. */
export const SUBPROTOCOL_KEY_PREFIX = 'openai-insecure-api-key.'
