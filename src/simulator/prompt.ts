import { list, member, record, string, type Json } from './json.ts'

/** The fields that contain text of a person or a tool, in all three protocols. */
const TEXT_FIELDS = ['text', 'content', 'parts', 'output'] as const

/**
 * Counts the tokens of a prompt: a quarter of the UTF-8 bytes of the text, rounded up. The text is a bare string, and every string at any
 * depth in the fields `text`, `content`, `parts` and `output`. Roles, tools, images and audio do not count.
 */
export function promptTokens(...values: unknown[]): number {
  return Math.ceil(textBytes(values) / 4)
}

/** Counts the tokens of one or several inputs. An input is a text or an array of token numbers. */
export function inputTokens(value: unknown): number {
  if (!Array.isArray(value)) return promptTokens(value)
  if (value.some(item => typeof item === 'number')) return value.length
  let tokens = 0
  for (const item of value) tokens += Array.isArray(item) ? item.length : promptTokens(item)
  return tokens
}

/**
 * The text of the last message if it is from the model, because the response continues that text; otherwise null. A message with a tool
 * call is not continued.
 */
export function prefillOf(messages: unknown, role: 'assistant' | 'model'): string | null {
  const last = record(list(messages).at(-1))
  if (last['role'] !== role || list(last['tool_calls']).length > 0) return null
  const content = last['content'] ?? last['parts']
  if (typeof content === 'string') return content
  return list(content).map(part => string(record(part)['text'])).join('')
}

/** Tells whether the last message contains the result of a tool, which means that a tool was already called. */
export function endsInToolResult(messages: unknown): boolean {
  const last = record(list(messages).at(-1))
  if (last['role'] === 'tool' || string(last['type']).endsWith('_call_output')) return true
  const parts = [...list(last['content']), ...list(last['parts'])].map(record)
  return parts.some((part: Json) => part['type'] === 'tool_result' || member(part, 'functionResponse') !== undefined)
}

// A list instead of recursion, because a prompt can be nested deeper than the call stack.
function textBytes(value: unknown): number {
  let bytes = 0
  const stack = [value]
  while (stack.length > 0) {
    const next = stack.pop()
    if (typeof next === 'string') bytes += Buffer.byteLength(next)
    else if (Array.isArray(next)) for (const item of next) stack.push(item)
    else if (typeof next === 'object' && next !== null) {
      for (const key of TEXT_FIELDS) stack.push((next as Json)[key])
    }
  }
  return bytes
}
