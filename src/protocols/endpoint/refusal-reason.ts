import { parseBounded } from '../../base/json-size.ts'
import { errorIn } from '../neutral/error-body.ts'
import { reasonIn, type RefusalReason } from '../neutral/error-reason.ts'

export type { RefusalReason } from '../neutral/error-reason.ts'

/** Tells whether the request was too long, or refused by a content filter; null = neither. @param body the whole response, decompressed */
export function refusalReason(body: Buffer): RefusalReason | null {
  const error = errorIn(parse(body))
  return error && reasonIn(error)
}

/** Error codes with which OpenAI, Groq, GitHub Models and Alibaba's Model Studio send 401 or 403 although the credential is valid. */
const DENIALS: ReadonlyMap<string, RefusalReason> = new Map(Object.entries({
  'model_not_found': 'model_access',
  'model_permission_blocked_org': 'model_access',
  'model_permission_blocked_project': 'model_access',
  'no_access': 'model_access',
  'model.accessdenied': 'model_access',
  'unsupported_country_region_territory': 'region',
}))

/**
 * Messages of 401 or 403 although the credential is valid: "Project `p` does not have access to model `m`", "Your organization must be
 * verified to use the model `m`" (OpenAI), "You don't have access to the model with the specified model ID." (Bedrock), "This model is not
 * available in your region." (OpenRouter).
 */
const DENIAL_PATTERNS: readonly (readonly [RegExp, RefusalReason])[] = [
  [/(does not|doesn't|don't) have access to (the |this )?model\b|^no access to model\b/i, 'model_access'],
  [/organi[sz]ation must be verified to/i, 'model_access'],
  [/^country, region\b.* not supported|not (available|supported) in your (country|region)/i, 'region'],
]

/** Matches errors about the credential, which only the operator can solve. Matches codes such as `invalid_api_key` and `InvalidApiKey`. */
const ABOUT_THE_CREDENTIAL = /(?<![a-z])(api)?(key|credential|secret|token)s?(?![a-z])/i
const WITHIN_CAMEL_CASE = /(?<=[a-z])(?=[A-Z])/g

/**
 * @returns the reason of a response with 401 or 403 if the credential is valid, such as a model or region that the account may not use;
 * null = the credential was refused, or the response gives no reason
 * @param body the whole response, decompressed
 */
export function denialReason(body: Buffer): RefusalReason | null {
  const error = errorIn(parse(body))
  if (error === null) return null
  const refused = reasonIn(error)
  if (refused !== null) return refused
  if (ABOUT_THE_CREDENTIAL.test(body.toString('utf8', 0, MAX_JSON_BYTES).replace(WITHIN_CAMEL_CASE, ' '))) return null
  const message = typeof error['message'] === 'string' ? error['message'] : ''
  const { code } = error
  const coded = typeof code === 'string' ? DENIALS.get(code.toLowerCase()) : undefined
  return coded ?? DENIAL_PATTERNS.find(([pattern]) => pattern.test(message))?.[1] ?? null
}

/** Matches a single word. A sentence of the provider may quote the prompt, so it is not used. */
const IDENTIFIER = /^[A-Za-z][\w.-]{0,63}$/

/**
 * The code of an error: `rate_limit_exceeded`, `RESOURCE_EXHAUSTED`; null = no code, or no JSON.
 * @param body the whole response, decompressed
 */
export function errorIdentifier(body: Buffer): string | null {
  const error = errorIn(parse(body))
  if (error === null) return null
  const words = [error['code'], error['type'], error['status']]
  return words.find((word): word is string => typeof word === 'string' && IDENTIFIER.test(word)) ?? null
}

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/**
 * The ms to wait before a retry, which Gemini reports only in the body (google.rpc.RetryInfo); null = none.
 * @param body whole, decompressed
 */
export function retryDelay(body: Buffer): number | null {
  const details = errorIn(parse(body))?.['details']
  const records = Array.isArray(details) ? details.map(record) : []
  const text = records.find(each => each?.['@type'] === RETRY_INFO)?.['retryDelay']
  const seconds = typeof text === 'string' ? /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(text)?.[1] : undefined
  return seconds === undefined ? null : Number(seconds) * 1000
}

function record(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
}

/** Larger errors are not parsed, because parsing takes long: an error may quote the whole prompt. */
const MAX_JSON_BYTES = 256 * 1024
/** Maximum bytes that are read of an error that is not parsed. */
const MAX_TEXT_BYTES = 4096

function parse(body: Buffer): unknown {
  try {
    if (body.length <= MAX_JSON_BYTES) return parseBounded(body.toString('utf8'))
  } catch {
    // The error may be plain text.
  }
  return body.toString('utf8', 0, MAX_TEXT_BYTES)
}
