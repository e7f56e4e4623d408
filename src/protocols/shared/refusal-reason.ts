import { parseBounded } from '../../base/json-size.ts'

/** Why an upstream refuses a request that another model, or another account, might have answered. */
export type RefusalReason = 'context_length' | 'content_filter' | 'model_access' | 'region'

/** Codes and types that say it in a word, in the three protocols and in those that imitate them. */
const CODES: ReadonlyMap<string, RefusalReason> = new Map(Object.entries({
  context_length_exceeded: 'context_length',
  exceed_context_size_error: 'context_length',
  model_context_window_exceeded: 'context_length',
  tokens_limit_reached: 'context_length',
  content_filter: 'content_filter',
  content_filtered: 'content_filter',
  content_policy_violation: 'content_filter',
  responsibleaipolicyviolation: 'content_filter',
  moderation_blocked: 'content_filter',
  data_inspection_failed: 'content_filter',
}))

/**
 * Wordings of the vendors that have no code for it: "prompt is too long: 210000
 * tokens > 200000 maximum" (messages), "The input token count (1200000) exceeds
 * the maximum number of tokens allowed (1048576)." (generate), "This model's
 * maximum context length is 8192 tokens" (chat, without a code where the server
 * is not the vendor's own). The third and fourth are those of xAI and Moonshot,
 * of Qwen, text-generation-inference and Vertex; the last of xAI and DeepSeek.
 */
const MESSAGE_PATTERNS: readonly (readonly [RegExp, RefusalReason])[] = [
  [/(prompt|input) is too long|context (window|length|limit|size)/i, 'context_length'],
  [/exceeds? the maximum number of (input )?tokens|too many (input )?tokens/i, 'context_length'],
  [/maximum prompt length|exceeded model token limit|range of input length/i, 'context_length'],
  [/`inputs` (must have less than|tokens \+)|input token count is \d+ but/i, 'context_length'],
  [/content[ _-]?(filter|management policy|policy)|safety system/i, 'content_filter'],
  [/was flagged|flagged (by|as|for)/i, 'content_filter'],
  [/violates usage guidelines|^content exists risk/i, 'content_filter'],
]

/** It was not the prompt that was flagged. A name may stand between: "Your account (a@b.c) was flagged". */
const ABOUT_THE_ACCOUNT = /\b(account|organi[sz]ation|project|key)( \S+)? (was|has been|is)( \w+)? flagged/i

/**
 * Reads out of an error answer whether the request was too long for the model, or
 * refused by the provider's content filter.
 *
 * @param body the whole response, decompressed
 * @returns null when it says neither, or is not JSON
 */
export function refusalReason(body: Buffer): RefusalReason | null {
  const error = errorOf(parse(body))
  return error && reasonIn(error)
}

function reasonIn(error: Record<string, unknown>): RefusalReason | null {
  const inner = record(error['innererror']) ?? record(error['inner_error'])
  for (const word of [error['code'], error['type'], error['status'], inner?.['code']]) {
    const reason = typeof word === 'string' ? CODES.get(word.toLowerCase()) : undefined
    if (reason !== undefined) return reason
  }
  const { message } = error
  if (typeof message !== 'string') return null
  if (ABOUT_THE_ACCOUNT.test(message)) return null
  return MESSAGE_PATTERNS.find(([pattern]) => pattern.test(message))?.[1] ?? null
}

/**
 * Codes that come with 401 and 403 though the credential is good: those of OpenAI, Groq, GitHub
 * Models and Alibaba's Model Studio.
 */
const DENIALS: ReadonlyMap<string, RefusalReason> = new Map(Object.entries({
  'model_not_found': 'model_access',
  'model_permission_blocked_org': 'model_access',
  'model_permission_blocked_project': 'model_access',
  'no_access': 'model_access',
  'model.accessdenied': 'model_access',
  'unsupported_country_region_territory': 'region',
}))

/**
 * Wordings of it: "Project `p` does not have access to model `m`", "Your organization must be verified
 * to use the model `m`" (OpenAI), "You don't have access to the model with the specified model ID."
 * (Bedrock), "This model is not available in your region." (OpenRouter).
 */
const DENIAL_PATTERNS: readonly (readonly [RegExp, RefusalReason])[] = [
  [/(does not|doesn't|don't) have access to (the |this )?model\b|^no access to model\b/i, 'model_access'],
  [/organi[sz]ation must be verified to/i, 'model_access'],
  [/^country, region\b.* not supported|not (available|supported) in your (country|region)/i, 'region'],
]

/** Whatever is said of those is for the operator alone, be it in `invalid_api_key` or in `InvalidApiKey`. */
const ABOUT_THE_CREDENTIAL = /(?<![a-z])(api)?(key|credential|secret|token)s?(?![a-z])/i
const WITHIN_CAMEL_CASE = /(?<=[a-z])(?=[A-Z])/g

/**
 * Reads out of a response with 401 or 403 what in the request was refused, be it that the account may
 * not use the model, or not from where it is.
 *
 * @param body the whole response, decompressed
 * @returns null when it is the credential, or does not say
 */
export function denialReason(body: Buffer): RefusalReason | null {
  const error = errorOf(parse(body))
  if (error === null) return null
  const refused = reasonIn(error)
  if (refused !== null) return refused
  if (ABOUT_THE_CREDENTIAL.test(body.toString('utf8').replace(WITHIN_CAMEL_CASE, ' '))) return null
  const message = typeof error['message'] === 'string' ? error['message'] : ''
  const { code } = error
  const coded = typeof code === 'string' ? DENIALS.get(code.toLowerCase()) : undefined
  return coded ?? DENIAL_PATTERNS.find(([pattern]) => pattern.test(message))?.[1] ?? null
}

/** A word, not a text: what a provider says in sentences may quote the prompt. */
const IDENTIFIER = /^[A-Za-z][\w.-]{0,63}$/

/**
 * The word with which an error answer names itself: `rate_limit_exceeded`,
 * `overloaded_error`, `RESOURCE_EXHAUSTED`.
 *
 * @param body the whole response, decompressed
 * @returns null when it has none, or is not JSON
 */
export function errorIdentifier(body: Buffer): string | null {
  const error = errorOf(parse(body))
  if (error === null) return null
  const words = [error['code'], error['type'], error['status']]
  return words.find((word): word is string => typeof word === 'string' && IDENTIFIER.test(word)) ?? null
}

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/**
 * How long an error answer asks to be left alone: Gemini says so in its body
 * alone. Source: google.rpc.RetryInfo, whose `retryDelay` is a Duration in JSON.
 *
 * @param body the whole response, decompressed
 * @returns milliseconds, or null when it does not say
 */
export function retryDelay(body: Buffer): number | null {
  const details = errorOf(parse(body))?.['details']
  const records = Array.isArray(details) ? details.map(record) : []
  const text = records.find(each => each?.['@type'] === RETRY_INFO)?.['retryDelay']
  const seconds = typeof text === 'string' ? /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(text)?.[1] : undefined
  return seconds === undefined ? null : Number(seconds) * 1000
}

/** `{error:{...}}`, the same in an array (generate streams), or the error's members at the top. */
function errorOf(value: unknown): Record<string, unknown> | null {
  const top = record(Array.isArray(value) ? value[0] : value)
  if (top === null) return null
  return typeof top['error'] === 'string' ? { message: top['error'] } : (record(top['error']) ?? top)
}

function record(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
}

function parse(body: Buffer): unknown {
  try {
    return parseBounded(body.toString('utf8'))
  } catch {
    // Not JSON: it says nothing that can be understood.
    return null
  }
}
