import type { JsonObject } from '../../../src/protocols/neutral/json.ts'

/** An event of a stream: its name, and its data. */
export type SampleEvent = readonly [name: string, data: JsonObject]

interface ResponseSample {
  readonly body: JsonObject
  readonly events: readonly SampleEvent[]
}

const ARGUMENTS = '{"at":1,"all":["x"]}'
const event = (data: JsonObject): SampleEvent => [String(data['type'] ?? ''), data]

const chatUsage = { prompt_tokens: 9, completion_tokens: 8, total_tokens: 17 }
const chatChunk = (delta: JsonObject, more: JsonObject = {}): SampleEvent => ['', {
  id: 'c', model: 'm', choices: [{ index: 0, delta, logprobs: { content: [{ token: 'a', bytes: [97], top_logprobs: [{ token: 'a' }] }] }, ...more }],
}]
const chat: ResponseSample = {
  body: {
    id: 'c', model: 'm', usage: chatUsage, choices: [
      {
        index: 0, finish_reason: 'tool_calls', message: {
          content: [{ type: 'text', text: 'I look.' }], reasoning_content: 'Hm.', refusal: 'No.', annotations: [{ type: 'url_citation' }],
          tool_calls: [{ id: 'call_1', function: { name: 'look', arguments: ARGUMENTS } }, { id: 'call_2', function: { name: 'run', arguments: '{"at":' } }],
        },
      },
    ],
  },
  events: [
    chatChunk({ role: 'assistant', content: '' }), chatChunk({ reasoning_content: 'Hm.' }), chatChunk({ content: 'I look.' }), chatChunk({ refusal: 'No.' }),
    chatChunk({ tool_calls: [{ index: 0, id: 'call_1', function: { name: 'look', arguments: '{"at"' } }, { index: 1, id: 'call_2', function: { name: 'run', arguments: ARGUMENTS } }] }),
    chatChunk({ tool_calls: [{ index: 2, id: 'call_3', function: { name: 'look', arguments: '{"at":' } }] }), chatChunk({ tool_calls: [{ index: 2, function: { arguments: '1' } }] }),
    chatChunk({ tool_calls: [{ index: 0, function: { name: 'look', arguments: '{}' } }] }),
    chatChunk({}, { finish_reason: 'tool_calls', usage: chatUsage }), ['', { id: 'c', model: 'm', choices: [], usage: chatUsage }],
  ],
}

const item = (type: string, more: JsonObject): JsonObject => ({ type, id: 'i', status: 'completed', ...more })
const call = item('function_call', { call_id: 'call_1', name: 'look', arguments: ARGUMENTS })
const message = item('message', { role: 'assistant', content: [{ type: 'output_text', text: 'I look.', annotations: [{ type: 'url_citation' }], logprobs: [{ token: 'a' }] }, { type: 'refusal', refusal: 'No.' }] })
const reasoning = item('reasoning', { summary: [{ type: 'summary_text', text: 'Hm.' }], content: [{ type: 'reasoning_text', text: 'Hm.' }], encrypted_content: 'x' })
const response = { id: 'resp_1', model: 'm', output: [reasoning, message, call, item('custom_tool_call', { call_id: 'call_2', name: 'run', input: 'ls' })], usage: { input_tokens: 9, output_tokens: 8 } }
const responses: ResponseSample = {
  body: response,
  events: [
    event({ type: 'response.created', response: { id: 'resp_1', model: 'm', output: [] } }), event({ type: 'response.in_progress', response: {} }),
    event({ type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning' } }),
    event({ type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'Hm.' }),
    event({ type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'Hm.' }),
    event({ type: 'response.output_item.done', output_index: 0, item: reasoning }),
    event({ type: 'response.output_text.delta', output_index: 100_000, content_index: 0, delta: 'I look.', logprobs: [{ token: 'a' }] }),
    event({ type: 'response.refusal.delta', output_index: 100_000, content_index: 100_000, delta: 'No.' }),
    event({ type: 'response.output_text.done', output_index: 100_000, content_index: 0 }), event({ type: 'response.refusal.done', output_index: 100_000, content_index: 200_000 }),
    event({ type: 'response.output_item.done', output_index: 100_000, item: message }),
    event({ type: 'response.output_item.added', output_index: 200_000, item: call }), event({ type: 'response.output_item.added', output_index: 300_000, item: item('custom_tool_call', { call_id: 'call_2', name: 'run' }) }),
    event({ type: 'response.function_call_arguments.delta', output_index: 200_000, delta: ARGUMENTS }), event({ type: 'response.custom_tool_call_input.delta', output_index: 300_000, delta: 'ls' }),
    event({ type: 'response.output_item.done', output_index: 200_000, item: call }),
    event({ type: 'response.completed', response }),
  ],
}

const messagesUsage = { input_tokens: 9, output_tokens: 8, iterations: [{ type: 'compaction', input_tokens: 1, output_tokens: 1 }] }
const citations = [{ type: 'char_location', cited_text: 'a' }]
const blocks: JsonObject[] = [
  { type: 'thinking', thinking: 'Hm.', signature: 'x' }, { type: 'redacted_thinking', data: 'x' }, { type: 'text', text: 'I look.', citations },
  { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1, all: ['x'] } }, { type: 'server_tool_use', id: 'srv', name: 'x', input: {} },
]
const messages: ResponseSample = {
  body: { type: 'message', id: 'msg_1', model: 'm', content: blocks, stop_reason: 'tool_use', usage: messagesUsage },
  events: [
    event({ type: 'message_start', message: { id: 'msg_1', model: 'm', content: [], usage: messagesUsage } }), event({ type: 'ping' }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } }),
    event({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } }), event({ type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'x' } }),
    event({ type: 'content_block_stop', index: 0 }),
    event({ type: 'content_block_start', index: 100_000, content_block: { type: 'redacted_thinking', data: 'x' } }), event({ type: 'content_block_stop', index: 100_000 }),
    event({ type: 'content_block_start', index: 200_000, content_block: { type: 'text', text: '', citations } }), event({ type: 'content_block_delta', index: 200_000, delta: { type: 'text_delta', text: 'I look.' } }),
    event({ type: 'content_block_start', index: 300_000, content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} } }),
    event({ type: 'content_block_delta', index: 300_000, delta: { type: 'input_json_delta', partial_json: '{"at":' } }), event({ type: 'content_block_stop', index: 300_000 }),
    event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: messagesUsage }), event({ type: 'message_stop' }),
  ],
}

const generateUsage = { promptTokenCount: 9, candidatesTokenCount: 8, totalTokenCount: 17, promptTokensDetails: [{ modality: 'TEXT', tokenCount: 9 }] }
const generateChunk = (...parts: JsonObject[]): JsonObject => ({
  responseId: 'r', modelVersion: 'm', usageMetadata: generateUsage, candidates: [{
    index: 0, finishReason: 'STOP', content: { role: 'model', parts }, safetyRatings: [{ category: 'a', probability: 'LOW' }], citationMetadata: { citationSources: [{ uri: 'x' }] },
    groundingMetadata: { groundingChunks: [{ web: { uri: 'x' } }], groundingSupports: [{ groundingChunkIndices: [0] }] }, logprobsResult: { chosenCandidates: [{ token: 'a' }] },
  }],
})
const parts: JsonObject[] = [
  { text: 'Hm.', thought: true, thoughtSignature: 'x' }, { text: 'I look.' }, { executableCode: { code: '1' } }, { codeExecutionResult: { output: '1' } },
  { inlineData: { mimeType: 'image/png', data: 'AAAA' } }, { functionCall: { id: 'call_1', name: 'look', args: { at: 1, all: ['x'] } }, thoughtSignature: 'x' }, { text: '', thoughtSignature: 'x' },
]
const generate: ResponseSample = {
  body: { ...generateChunk(...parts), promptFeedback: { safetyRatings: [{ category: 'a' }] } },
  events: parts.map(part => ['', generateChunk(part)] as const),
}

const converseUsage = { inputTokens: 9, outputTokens: 8, cacheDetails: [{ ttl: '5m', inputTokens: 1 }] }
const converse: ResponseSample = {
  body: {
    output: { message: { role: 'assistant', content: [
      { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'x' } } }, { reasoningContent: { redactedContent: 'x' } }, { text: 'I look.' },
      { toolUse: { toolUseId: 'tooluse_1', name: 'look', input: { at: 1, all: ['x'] } } }, { unknown: {} },
    ] } },
    stopReason: 'tool_use', usage: converseUsage,
  },
  events: [
    ['messageStart', { role: 'assistant' }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'Hm.' } } }], ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'x' } } }],
    ['contentBlockStop', { contentBlockIndex: 0 }], ['contentBlockDelta', { contentBlockIndex: 100_000, delta: { text: 'I look.' } }],
    ['contentBlockStart', { contentBlockIndex: 200_000, start: { toolUse: { toolUseId: 'tooluse_1', name: 'look' } } }],
    ['contentBlockDelta', { contentBlockIndex: 200_000, delta: { toolUse: { input: '{"at":' } } }], ['contentBlockStop', { contentBlockIndex: 200_000 }],
    ['messageStop', { stopReason: 'tool_use' }], ['metadata', { usage: converseUsage }],
  ],
}

/** A response of each protocol with everything that its reader knows: whole, and as a stream. */
export const RESPONSES: Readonly<Record<string, ResponseSample>> = { chat, responses, messages, generate, converse }

/** Words that a reader knows and no sample contains, because they end a response in other ways. */
export const NOT_IN_RESPONSES: ReadonlySet<string> = new Set([
  'chat: content_filter', 'chat: function_call', 'chat: length', 'responses: response.failed', 'responses: response.incomplete', 'responses: error',
  'messages: error', 'converse: error',
])
