import { list, member, record, string, type Json } from './json.ts'

/** The fields that hold what a person or a tool said, in all three protocols. */
const TEXT_FIELDS = ['text', 'content', 'parts', 'output'] as const

/**
 * Tokens of a prompt: a quarter of the UTF-8 bytes of its text, rounded up. Text
 * is every string in the fields `text`, `content`, `parts` and `output`,
 * at any depth, and a bare string. Roles, tools, images and audio count nothing.
 */
export function promptTokens(...values: unknown[]): number {
  return Math.ceil(textBytes(values) / 4)
}

/** Tokens of one input or of several, each a text or already an array of token numbers. */
export function inputTokens(value: unknown): number {
  if (!Array.isArray(value)) return promptTokens(value)
  if (value.some(item => typeof item === 'number')) return value.length
  let tokens = 0
  for (const item of value) tokens += Array.isArray(item) ? item.length : promptTokens(item)
  return tokens
}

/**
 * The text of the last message if the model wrote it: the response continues it.
 * Otherwise null. A message with a tool call is not continued.
 */
export function prefillOf(messages: unknown, role: 'assistant' | 'model'): string | null {
  const last = record(list(messages).at(-1))
  if (last['role'] !== role || list(last['tool_calls']).length > 0) return null
  const content = last['content'] ?? last['parts']
  if (typeof content === 'string') return content
  return list(content).map(part => string(record(part)['text'])).join('')
}

/** Does the last message carry a tool's result? Then a tool was called already. */
export function endsInToolResult(messages: unknown): boolean {
  const last = record(list(messages).at(-1))
  if (last['role'] === 'tool' || string(last['type']).endsWith('_call_output')) return true
  const parts = [...list(last['content']), ...list(last['parts'])].map(record)
  return parts.some((part: Json) => part['type'] === 'tool_result' || member(part, 'functionResponse') !== undefined)
}

// An explicit stack: a prompt can be nested deeper than the call stack.
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
