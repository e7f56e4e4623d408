import { isObject } from '../../base/is-object.ts'

/** Why an upstream refuses a request that another model or account may accept. */
export type RefusalReason = 'context_length' | 'content_filter' | 'model_access' | 'region'

/** Reasons by the codes and types that vendors send. */
const CODES: ReadonlyMap<string, RefusalReason> = new Map(Object.entries({
  context_length_exceeded: 'context_length', exceed_context_size_error: 'context_length',
  model_context_window_exceeded: 'context_length', tokens_limit_reached: 'context_length',
  content_filter: 'content_filter', content_filtered: 'content_filter', content_policy_violation: 'content_filter',
  responsibleaipolicyviolation: 'content_filter', moderation_blocked: 'content_filter', data_inspection_failed: 'content_filter',
}))

/**
 * Reasons by message, for vendors that send no code: "prompt is too long: 210000 tokens > 200000 maximum" (messages), "The input token
 * count (1200000) exceeds the maximum number of tokens allowed (1048576)." (generate), "This model's maximum context length is 8192 tokens"
 * (chat). The third and fourth patterns are for xAI, Moonshot, Qwen, text-generation-inference and Vertex AI; the last pattern is for xAI
 * and DeepSeek.
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

/** Matches messages that the account was flagged: "Your account (a@b.c) was flagged". In such a case the prompt is not the reason. */
const ABOUT_THE_ACCOUNT = /\b(account|organi[sz]ation|project|key)( \S+)? (was|has been|is)( \w+)? flagged/i

/** @param error from `errorIn` @returns null = the request was not refused, or for another reason */
export function reasonIn(error: Record<string, unknown>): RefusalReason | null {
  const inner = [error['innererror'], error['inner_error']].find(isObject)
  for (const word of [error['code'], error['type'], error['status'], inner?.['code']]) {
    const reason = typeof word === 'string' ? CODES.get(word.toLowerCase()) : undefined
    if (reason !== undefined) return reason
  }
  const { message } = error
  if (typeof message !== 'string' || ABOUT_THE_ACCOUNT.test(message)) return null
  return MESSAGE_PATTERNS.find(([pattern]) => pattern.test(message))?.[1] ?? null
}
