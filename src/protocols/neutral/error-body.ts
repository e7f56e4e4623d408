import { isObject } from '../../base/is-object.ts'

/** How deep an error may stand in others. */
const MAX_DEPTH = 5
/** Characters of a text that is no JSON. */
const MAX_TEXT = 4096

/**
 * The object of an error body that has its message and its code:
 *
 *   - `{error: {...}}` of OpenAI, Anthropic and Google, `{error: "text"}` of Ollama, `{detail: ...}` of FastAPI
 *   - the same as the first element of a list: Gemini's endpoint for OpenAI's clients
 *   - the error of the first choice: OpenRouter, where the response has begun
 *   - `base_resp` of MiniMax, which has it in every response
 *   - the members of an error at the top, and a plain text
 *
 * @param value of the body as parsed JSON, or as text where it is none
 * @returns null = it says nothing. `message` is a text, or null
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

/** A page for a browser, as proxies have it for errors. */
function isPage(text: string): boolean {
  return /^\s*(<|$)/.test(text)
}

/** Members that have the words of an error. */
const WORDS = ['message', 'msg', 'detail', 'error', 'errors', 'error_description'] as const

/**
 * The words of an error: of Mistral's `message: {detail: [...]}`, of FastAPI's list of `{loc, msg}`, and of the error of
 * another provider, which OpenRouter has in `metadata.raw`.
 */
function messageOf(value: unknown, depth: number): string | null {
  if (depth > MAX_DEPTH) return null
  if (typeof value === 'string') return value === '' ? null : value
  if (Array.isArray(value)) return joined(value.slice(0, 10).map(item => messageOf(item, depth + 1)), '; ')
  if (!isObject(value)) return null
  const word = WORDS.find(name => messageOf(value[name], depth + 1) !== null)
  const own = word === undefined ? null : messageOf(value[word], depth + 1)
  const place = Array.isArray(value['loc']) ? value['loc'].join('.') : null
  const raw = isObject(value['metadata']) ? rawMessage(value['metadata']['raw'], depth) : null
  return joined([place, own, raw === own ? null : raw], ': ')
}

function rawMessage(raw: unknown, depth: number): string | null {
  if (typeof raw !== 'string') return messageOf(raw, depth + 1)
  try {
    const inner = errorIn(JSON.parse(raw))?.['message']
    return typeof inner === 'string' ? inner : null
  } catch {
    // It is the text itself.
    return isPage(raw) ? null : raw.slice(0, MAX_TEXT)
  }
}

function joined(texts: readonly (string | null)[], separator: string): string | null {
  const present = texts.filter(text => text !== null && text !== '')
  return present.length === 0 ? null : present.join(separator)
}
