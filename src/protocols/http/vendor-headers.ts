/** Headers of Anthropic, Google and Azure in which clients send a key instead of in `Authorization`. */
export const KEY_HEADERS = ['x-api-key', 'x-goog-api-key', 'api-key'] as const

/** The header of the gateway's key beside a client's own credential for a provider. */
export const GATEWAY_KEY_HEADER = 'x-gateway-key'

/** Headers in which a client sends its own credential for a provider. */
export const OWN_CREDENTIAL_HEADERS = ['authorization', ...KEY_HEADERS] as const

/** All headers that may hold a client's key and are not sent upstream. */
export const CREDENTIAL_HEADERS: readonly string[] = [
  ...OWN_CREDENTIAL_HEADERS, GATEWAY_KEY_HEADER, 'x_gateway_key',
  // The gateway reads no key from these spellings, but clients may send them.
  ...KEY_HEADERS.map(name => name.replaceAll('-', '_')), 'apikey', 'x-apikey', 'x_apikey',
]

/** The two names of the version header of the messages protocol. Client and upstream may use different names. */
export const VERSION_HEADERS: ReadonlySet<string> = new Set(['anthropic-version', 'vendorb-version'])

/** Headers with the URL of an upload that was started at Google. The URL may contain the key of the request that started the upload. */
export const UPLOAD_ADDRESS_HEADERS: ReadonlySet<string> = new Set(['x-goog-upload-url', 'x-goog-upload-control-url'])

/** Matches the rate limit headers of OpenAI and of Anthropic. */
export const RATE_LIMIT_HEADER = /^(x-ratelimit-|anthropic-ratelimit-)/

/** Matches headers that name the operator's account at OpenAI, Anthropic, Azure or another vendor, or the operator of another gateway. */
export const ACCOUNT_HEADER =
  /(?:^|-)(?:organization|org|project|workspace|account|tenant|subscription|team|deployment)(?:-(?:id|name|slug))?$|^x-litellm-/

/** Headers that choose one of the accounts that a credential can use. An upstream may refuse the choice with 401. */
export const ACCOUNT_CHOICE_HEADERS = ['openai-organization', 'openai-project', 'x-goog-user-project'] as const

/** Prefix of a subprotocol that contains a key. OpenAI's realtime client sends it, because browsers cannot set headers on a WebSocket. */
export const SUBPROTOCOL_KEY_PREFIX = 'openai-insecure-api-key.'
