import type { JsonObject } from '../../src/protocols/neutral/json.ts'
import { sse } from './translation.ts'
import { MESSAGE_START, chatStream, messageEnd, messagesEvents } from './translating-gateway.ts'

/** The content of a stream: thinking, text, and two tool calls. */
export interface StreamContent {
  readonly thinking: string
  /** Pieces of the text. */
  readonly text: readonly string[]
  /** Pieces of each call's arguments, as JSON text. */
  readonly calls: readonly (readonly string[])[]
}

/** Content with characters of two to four bytes, escapes, and text that looks like framing. */
export const SHORT: StreamContent = {
  thinking: 'Hm é.', text: ['I lo', 'ok: "日本"\n\ndata: 😀\\'], calls: [['{"at":"\\u00', 'e9 \\"😀\\ud83d', '\\ude00"}'], ['']],
}

/** @param words of the text */
export function longContent(words: number): StreamContent {
  const text = Array.from({ length: words }, (_, n) => `${n % 7 === 0 ? '日本😀' : 'word'} "${n}"\n`)
  return { thinking: text.slice(0, 20).join(''), text, calls: [['{"list":[', ...text.map((_, n) => `${n},`), '0]}'], ['{}']] }
}

const USAGE = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13, prompt_tokens_details: { cached_tokens: 5 }, completion_tokens_details: { reasoning_tokens: 1 } }

/** The streams with this content, one for each upstream protocol, with LF at the ends of lines. */
export const STREAMS: Readonly<Record<string, (content: StreamContent) => string>> = {
  chat: ({ thinking, text, calls }) => chatStream(
    { delta: { role: 'assistant', reasoning_content: thinking } }, ...text.map(content => ({ delta: { content } })),
    ...calls.flatMap((pieces, index) => [
      { delta: { tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: `f${index}`, arguments: '' } }] } },
      ...pieces.map(piece => ({ delta: { tool_calls: [{ index, function: { arguments: piece } }] } })),
    ]),
    { delta: {}, finish_reason: 'tool_calls' }, { usage: USAGE },
  ),
  messages: ({ thinking, text, calls }) => messagesEvents(
    MESSAGE_START, ...block(0, { type: 'thinking', thinking: '', signature: '' }, [{ type: 'thinking_delta', thinking }, { type: 'signature_delta', signature: 'SIG/+=' }]),
    ...block(1, { type: 'text', text: '' }, text.map(piece => ({ type: 'text_delta', text: piece }))),
    ...calls.flatMap((pieces, n) => block(2 + n, { type: 'tool_use', id: `toolu_${n}`, name: `f${n}`, input: {} }, pieces.map(partial_json => ({ type: 'input_json_delta', partial_json })))),
    { type: 'ping' }, ...messageEnd('tool_use', 4),
  ),
  responses: ({ thinking, text, calls }) => {
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: thinking }], encrypted_content: 'ENC' }
    const message = { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: text.join(''), annotations: [] }] }
    const items = calls.map((pieces, n) => ({ type: 'function_call', id: `fc_${n}`, call_id: `call_${n}`, name: `f${n}`, arguments: pieces.join('') }))
    const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [reasoning, message, ...items] }
    const usage = { input_tokens: 9, input_tokens_details: { cached_tokens: 5 }, output_tokens: 4, output_tokens_details: { reasoning_tokens: 1 }, total_tokens: 13 }
    return sse(
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...reasoning, summary: [] } },
      { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, item_id: 'rs_1', delta: thinking },
      { type: 'response.output_item.done', output_index: 0, item: reasoning },
      { type: 'response.output_item.added', output_index: 1, item: { ...message, content: [] } },
      ...text.map(delta => ({ type: 'response.output_text.delta', output_index: 1, content_index: 0, item_id: 'msg_1', delta })),
      { type: 'response.output_item.done', output_index: 1, item: message },
      ...items.flatMap((item, n) => [
        { type: 'response.output_item.added', output_index: 2 + n, item: { ...item, arguments: '' } },
        ...(calls[n] ?? []).map(delta => ({ type: 'response.function_call_arguments.delta', output_index: 2 + n, item_id: item.id, delta })),
        { type: 'response.output_item.done', output_index: 2 + n, item },
      ]),
      { type: 'response.completed', response: { ...response, usage } },
    ).toString()
  },
  generate: ({ thinking, text, calls }) => {
    const chunk = (part: JsonObject, more: JsonObject = {}): JsonObject => ({
      candidates: [{ content: { role: 'model', parts: [part] }, index: 0, ...more }], responseId: 'r', modelVersion: 'gemini-3-pro',
      usageMetadata: { promptTokenCount: 9, cachedContentTokenCount: 5, candidatesTokenCount: 3, thoughtsTokenCount: 1, totalTokenCount: 13 },
    })
    const functionCalls = calls.map((pieces, n): JsonObject => ({ name: `f${n}`, args: JSON.parse(pieces.join('') || '{}') as unknown }))
    return sse(
      chunk({ text: thinking, thought: true }), ...text.map(piece => chunk({ text: piece })),
      ...functionCalls.map((functionCall, n) => chunk({ functionCall, ...n === 0 && { thoughtSignature: 'U0lH' } })), chunk({ text: '' }, { finishReason: 'STOP' }),
    ).toString()
  },
}

function block(index: number, content_block: JsonObject, deltas: readonly JsonObject[]): (JsonObject & { readonly type: string })[] {
  return [
    { type: 'content_block_start', index, content_block },
    ...deltas.map(delta => ({ type: 'content_block_delta', index, delta })), { type: 'content_block_stop', index },
  ]
}
