import { isObject } from '../../base/is-object.ts'
import { parseBounded } from '../../base/json-size.ts'

/** Maximum depth of nested errors. */
const MAX_DEPTH = 5
/** Maximum characters of a body that is not JSON. */
const MAX_TEXT = 4096

/**
 * Finds the message and the code of an error in the body of a response. The error may be:
 *
 * - `{error: {...}}` of OpenAI, Anthropic and Google, `{error: "text"}` of Ollama, `{detail: ...}` of FastAPI
 * - such an object as the first element of a list (Gemini's endpoint for OpenAI's clients)
 * - the error of the first choice (OpenRouter, if the response has begun)
 * - `base_resp` of MiniMax, which every response contains
 * - the members of an error at the top level, and plain text
 *
 * @param value parsed JSON, or the text of a body that is not JSON
 * @returns null = the body has no error information. `message` is text or null
 */
export function errorIn(value: unknown): Record<string, unknown> | null {
  const first = Array.isArray(value) ? value[0] as unknown : value
  if (typeof first === 'string') return isPage(first) ? null : { message: first.slice(0, MAX_TEXT) }
  if (!isObject(first)) return null
  const [choice] = Array.isArray(first['choices']) ? first['choices'] : []
  const inner = first['error'] ?? (isObject(choice) ? choice['error'] : null) ?? (isObject(first['detail']) ? first['detail']['error'] ?? first['detail'] : null)
  const error = isObject(inner) ? inner : inner !== null && inner !== undefined ? { ...first, message: inner } : isObject(first['base_resp']) ? { message: first['base_resp']['status_msg'] } : first
  return { ...error, message: messageOf(error, 0) }
}

/** Tells whether the text is an HTML page, which proxies send for errors, or blank. Such text is no message. */
function isPage(text: string): boolean {
  return /^\s*(<|$)/.test(text)
}

const WORDS = ['message', 'msg', 'detail', 'error', 'errors', 'error_description'] as const

/**
 * The message of an error. Also reads Mistral's `message: {detail: [...]}`, FastAPI's list of `{loc, msg}`, and a provider's error in
 * OpenRouter's `metadata.raw`.
 */
function messageOf(value: unknown, depth: number): string | null {
  if (depth > MAX_DEPTH) return null
  if (typeof value === 'string') return value === '' ? null : value
  if (Array.isArray(value)) return joined(value.slice(0, 10).map(item => messageOf(item, depth + 1)), '; ')
  if (!isObject(value)) return null
  const own = firstText(value, depth + 1)
  const place = Array.isArray(value['loc']) ? value['loc'].join('.') : null
  const raw = isObject(value['metadata']) ? rawMessage(value['metadata']['raw'], depth) : null
  return joined([place, own, raw === own ? null : raw], ': ')
}

function firstText(value: Record<string, unknown>, depth: number): string | null {
  for (const word of WORDS) {
    const text = messageOf(value[word], depth)
    if (text !== null) return text
  }
  return null
}

function rawMessage(raw: unknown, depth: number): string | null {
  if (typeof raw !== 'string') return messageOf(raw, depth + 1)
  try {
    const inner = errorIn(parseBounded(raw))?.['message']
    return typeof inner === 'string' ? inner : null
  } catch {
    // The text is not JSON.
    return isPage(raw) ? null : raw.slice(0, MAX_TEXT)
  }
}

function joined(texts: readonly (string | null)[], separator: string): string | null {
  const present = texts.filter(text => text !== null && text !== '')
  return present.length === 0 ? null : present.join(separator)
}
