/** In which clients send a key other than in `Authorization`: Anthropic's, Google's and Azure's. */
export const KEY_HEADERS = ['x-api-key', 'x-goog-api-key', 'api-key'] as const

/** All that may hold a client's key: none of them is sent upstream. */
export const CREDENTIAL_HEADERS: readonly string[] = [
  'authorization', ...KEY_HEADERS,
  // No key is read from these spellings of them.
  ...KEY_HEADERS.map(name => name.replaceAll('-', '_')), 'apikey', 'x-apikey', 'x_apikey',
]

/** The messages protocol's version, under either of its names: an upstream has its own name for it. */
export const VERSION_HEADERS: ReadonlySet<string> = new Set(['anthropic-version', 'vendorb-version'])

/** Where Google takes the bytes of an upload that was started: the start's key may stand in it. */
export const UPLOAD_ADDRESS_HEADERS: ReadonlySet<string> = new Set(['x-goog-upload-url', 'x-goog-upload-control-url'])

/** Rate limits, in the conventions of OpenAI and Anthropic. */
export const RATE_LIMIT_HEADER = /^(x-ratelimit-|anthropic-ratelimit-)/

/**
 * Names the operator's account at the vendor: OpenAI's organization and project, Anthropic's organization, Azure's
 * deployment, and what another gateway tells of its own operator.
 */
export const ACCOUNT_HEADER =
  /(?:^|-)(?:organization|org|project|workspace|account|tenant|subscription|team|deployment)(?:-(?:id|name|slug))?$|^x-litellm-/

/** In which a client chooses one of the accounts that the credential is for: an upstream may refuse the choice with 401. */
export const ACCOUNT_CHOICE_HEADERS = ['openai-organization', 'openai-project', 'x-goog-user-project'] as const

/** Browsers cannot set headers on a WebSocket; OpenAI's realtime client sends the key as a subprotocol. */
export const SUBPROTOCOL_KEY_PREFIX = 'openai-insecure-api-key.'
