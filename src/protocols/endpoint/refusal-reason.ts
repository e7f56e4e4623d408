import { parseBounded } from '../../base/json-size.ts'
import { errorIn } from '../neutral/error-body.ts'
import { reasonIn, type RefusalReason } from '../neutral/error-reason.ts'

export type { RefusalReason } from '../neutral/error-reason.ts'

/** Was the request too long, or refused by a content filter? null = neither. @param body the whole response, decompressed */
export function refusalReason(body: Buffer): RefusalReason | null {
  const error = errorIn(parse(body))
  return error && reasonIn(error)
}

/** Codes of 401 and 403 despite a valid credential, from OpenAI, Groq, GitHub Models and Alibaba's Model Studio. */
const DENIALS: ReadonlyMap<string, RefusalReason> = new Map(Object.entries({
  'model_not_found': 'model_access',
  'model_permission_blocked_org': 'model_access',
  'model_permission_blocked_project': 'model_access',
  'no_access': 'model_access',
  'model.accessdenied': 'model_access',
  'unsupported_country_region_territory': 'region',
}))

/**
 * Messages that mean the same: "Project `p` does not have access to model `m`", "Your organization must be verified to use the model `m`"
 * (OpenAI), "You don't have access to the model with the specified model ID." (Bedrock), "This model is not available in your region."
 * (OpenRouter).
 */
const DENIAL_PATTERNS: readonly (readonly [RegExp, RefusalReason])[] = [
  [/(does not|doesn't|don't) have access to (the |this )?model\b|^no access to model\b/i, 'model_access'],
  [/organi[sz]ation must be verified to/i, 'model_access'],
  [/^country, region\b.* not supported|not (available|supported) in your (country|region)/i, 'region'],
]

/** The error is about the credential, so it concerns only the operator. Codes such as `invalid_api_key` and `InvalidApiKey` match. */
const ABOUT_THE_CREDENTIAL = /(?<![a-z])(api)?(key|credential|secret|token)s?(?![a-z])/i
const WITHIN_CAMEL_CASE = /(?<=[a-z])(?=[A-Z])/g

/**
 * Why a response with 401 or 403 refused the request, for example for the model or the region that the account may not use.
 * @param body the whole response, decompressed @returns null = the credential was refused, or not said
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

/** A word, not a sentence: a provider's sentence may quote the prompt. */
const IDENTIFIER = /^[A-Za-z][\w.-]{0,63}$/

/** An error's code: `rate_limit_exceeded`, `RESOURCE_EXHAUSTED`; null = none, or not JSON. @param body the whole response, decompressed */
export function errorIdentifier(body: Buffer): string | null {
  const error = errorIn(parse(body))
  if (error === null) return null
  const words = [error['code'], error['type'], error['status']]
  return words.find((word): word is string => typeof word === 'string' && IDENTIFIER.test(word)) ?? null
}

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/** Milliseconds to wait, which Gemini states only in the body (google.rpc.RetryInfo); null = not said. @param body whole, decompressed */
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

/** Maximum bytes of an error that is parsed. An error may quote the prompt; more bytes take too long. */
const MAX_JSON_BYTES = 256 * 1024
/** Bytes that are read of an error that is not parsed. */
const MAX_TEXT_BYTES = 4096

function parse(body: Buffer): unknown {
  try {
    if (body.length <= MAX_JSON_BYTES) return parseBounded(body.toString('utf8'))
  } catch {
    // It may be plain text.
  }
  return body.toString('utf8', 0, MAX_TEXT_BYTES)
}
