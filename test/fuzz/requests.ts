import { readFileSync } from 'node:fs'
import { MODEL } from './template.ts'
import type { Template } from './template.ts'

/** A request as a client of a protocol sends it; edits change its body. */
export interface RequestSeed {
  /** Whose form its errors have. */
  readonly protocol: 'chat' | 'responses' | 'messages' | 'generate'
  /** MODEL in it is the name of the target's model. */
  readonly path: string
  readonly body: Template
  /** `form`: a list of parts; `socket`: a list of messages in a WebSocket. Default JSON. */
  readonly form?: 'form' | 'socket'
}

const recorded = (name: string): Template => {
  const text = readFileSync(new URL(`../behaviour/clients/recorded/${name}.json`, import.meta.url), 'utf8')
  return { ...(JSON.parse(text) as { body: Record<string, Template> }).body, model: MODEL }
}

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const SCHEMA: Template = {
  type: 'object', required: ['at'], additionalProperties: false,
  properties: { at: { type: ['string', 'null'], enum: ['a', null] }, list: { type: 'array', items: { anyOf: [{ $ref: '#/$defs/a' }, { const: 1 }] } } }, $defs: { a: { type: 'integer', minimum: 0 } },
}

const CHAT: Template = {
  model: MODEL, max_tokens: 64, temperature: 0.5, stop: ['END'], n: 1, seed: 1, stream: false, parallel_tool_calls: true, reasoning_effort: 'low', user: 'u', metadata: { a: 'b' }, logit_bias: { 50256: -100 },
  messages: [
    { role: 'system', content: 'Be brief' },
    { role: 'user', content: [{ type: 'text', text: 'Look' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}`, detail: 'low' } }, { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } }] },
    { role: 'assistant', content: 'I look.', reasoning_content: 'Hm.', tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"a"}' } }, { id: 'call_2', type: 'custom', custom: { name: 'patch', input: 'x' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: 'a bird' }, { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'done' }] },
    { role: 'assistant', refusal: 'No', content: null }, { role: 'developer', content: 'Go on' }, { role: 'user', content: 'And now?', name: 'bob' },
  ],
  tools: [{ type: 'function', function: { name: 'look', description: 'Looks', parameters: SCHEMA, strict: true } }, { type: 'custom', custom: { name: 'patch', format: { type: 'text' } } }],
  tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'look' } }] } },
  response_format: { type: 'json_schema', json_schema: { name: 'r', schema: SCHEMA, strict: true } }, stream_options: { include_usage: true },
}

const RESPONSES: Template = {
  model: MODEL, instructions: 'Be brief', max_output_tokens: 64, store: false, stream: false, include: ['reasoning.encrypted_content'], reasoning: { effort: 'low', summary: 'auto' }, text: { format: { type: 'json_schema', name: 'r', schema: SCHEMA, strict: true }, verbosity: 'low' },
  input: [
    { role: 'developer', content: 'Go on' }, { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Look' }, { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}`, detail: 'auto' }, { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }] },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'ENC' },
    { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'I look.', annotations: [] }, { type: 'refusal', refusal: 'No' }] },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"at":"a"}' }, { type: 'function_call', call_id: 'call_2', name: 'find', namespace: 'files', arguments: '{}' },
    { type: 'custom_tool_call', call_id: 'call_3', name: 'patch', input: 'x' }, { type: 'tool_search_call', call_id: 'call_4', execution: 'client', arguments: { query: 'x' } },
    { type: 'function_call_output', call_id: 'call_1', output: 'a bird' }, { type: 'function_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'x' }] },
    { type: 'custom_tool_call_output', call_id: 'call_3', output: 'ok' }, { type: 'tool_search_output', call_id: 'call_4', execution: 'client', tools: [{ type: 'function', name: 'found', parameters: SCHEMA }] },
    { type: 'additional_tools', tools: [{ type: 'function', name: 'more', parameters: {} }] }, { type: 'agent_message', content: 'hello' }, { role: 'user', content: 'And now?' },
  ],
  tools: [{ type: 'function', name: 'look', parameters: SCHEMA, strict: false }, { type: 'namespace', name: 'files', description: 'Files', tools: [{ type: 'function', name: 'find', parameters: { type: 'object' } }] }, { type: 'custom', name: 'patch', format: { type: 'text' } }, { type: 'tool_search', execution: 'client', parameters: {} }, { type: 'web_search' }],
  tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }] },
}

const MESSAGES: Template = {
  model: MODEL, max_tokens: 4096, stream: false, top_k: 5, stop_sequences: ['END'], metadata: { user_id: 'u' }, service_tier: 'auto', thinking: { type: 'enabled', budget_tokens: 2048 }, cache_control: { type: 'ephemeral' },
  system: [{ type: 'text', text: 'Be brief', cache_control: { type: 'ephemeral', ttl: '1h' } }],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Look' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }, { type: 'document', title: 'a', source: { type: 'text', media_type: 'text/plain', data: 'x' } }, { type: 'search_result', source: 'x', title: 't', content: [{ type: 'text', text: 'x' }] }] },
    { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 'SIG/+=' }, { type: 'redacted_thinking', data: 'AAAA' }, { type: 'text', text: 'I look.', citations: [] }, { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'a' } }, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } }, { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', is_error: false, content: [{ type: 'text', text: 'a bird' }, { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }] }, { type: 'text', text: 'And now?' }] },
    { role: 'assistant', content: 'Well' }, { role: 'system', content: 'Go on' }, { role: 'user', content: [{ type: 'compaction', content: 'before' }] },
  ],
  tools: [{ name: 'look', description: 'Looks', input_schema: SCHEMA, strict: true, cache_control: { type: 'ephemeral' } }, { type: 'web_search_20250305', name: 'web_search' }, { type: 'bash_20250124', name: 'bash' }], tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  output_config: { effort: 'low', format: { type: 'json_schema', schema: SCHEMA } },
}

const GENERATE: Template = {
  systemInstruction: { parts: [{ text: 'Be brief' }] },
  contents: [
    { role: 'user', parts: [{ text: 'Look' }, { inlineData: { mimeType: 'image/png', data: PIXEL } }, { fileData: { fileUri: 'https://example.com/a.png', mimeType: 'image/png' } }] },
    { role: 'model', parts: [{ text: 'Hm.', thought: true, thoughtSignature: 'U0lH' }, { text: 'I look.' }, { functionCall: { id: 'fc1', name: 'look', args: { at: 'a' } }, thoughtSignature: 'U0lH' }, { functionCall: { name: 'find', args: {} } }] },
    { role: 'user', parts: [{ functionResponse: { id: 'fc1', name: 'look', response: { output: 'a bird' }, parts: [{ inlineData: { mimeType: 'image/png', data: PIXEL } }] } }, { functionResponse: { name: 'find', response: { error: 'x' } } }] }, { role: 'user', parts: [{ text: 'And now?' }, { executableCode: { code: 'x', language: 'PYTHON' } }] },
  ],
  tools: [{ functionDeclarations: [{ name: 'look', description: 'Looks', parametersJsonSchema: SCHEMA }, { name: 'find', parameters: { type: 'OBJECT', properties: { a: { type: 'STRING', nullable: true, format: 'enum', enum: ['a'] } } } }] }, { googleSearch: {} }],
  toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['look'] } }, safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
  generationConfig: { maxOutputTokens: 64, candidateCount: 1, temperature: 0.5, topK: 5, stopSequences: ['END'], responseMimeType: 'application/json', responseJsonSchema: SCHEMA, thinkingConfig: { includeThoughts: true, thinkingBudget: 512 } },
}

const FILE: Template = { name: 'file', filename: 'a.mp3', type: 'audio/mpeg', value: 'ID3 sound' }
const field = (name: string, value: string): Template => ({ name, value })
const model = (verb: string): string => `/v1beta/models/${MODEL}:${verb}`
const withStream = (body: Template): Template => ({ ...body as Record<string, Template>, stream: true })

export const REQUESTS: Readonly<Record<string, RequestSeed>> = {
  'chat': { protocol: 'chat', path: '/v1/chat/completions', body: CHAT },
  'chat stream': { protocol: 'chat', path: '/v1/chat/completions', body: withStream(CHAT) },
  'chat short': { protocol: 'chat', path: '/v1/chat/completions', body: { model: MODEL, messages: [{ role: 'user', content: 'Hi' }] } },
  'completions': { protocol: 'chat', path: '/v1/completions', body: { model: MODEL, prompt: ['Once', 'Twice'], suffix: 'end', max_tokens: 9, n: 2, best_of: 2, echo: false, stream: false } },
  'completions stream': { protocol: 'chat', path: '/v1/completions', body: { model: MODEL, prompt: [1, 2, 3], max_tokens: 9, stream: true, stream_options: { include_usage: true } } },
  'embeddings': { protocol: 'chat', path: '/v1/embeddings', body: { model: MODEL, input: ['a', 'b'], dimensions: 2, encoding_format: 'base64', user: 'u' } },
  'responses': { protocol: 'responses', path: '/v1/responses', body: RESPONSES },
  'responses stream': { protocol: 'responses', path: '/v1/responses', body: withStream(RESPONSES) },
  'codex': { protocol: 'responses', path: '/v1/responses', body: recorded('codex-response') },
  'compact': { protocol: 'responses', path: '/v1/responses/compact', body: { model: MODEL, input: [{ role: 'user', content: 'Hi' }], instructions: 'x', previous_response_id: 'resp_1' } },
  'input tokens': { protocol: 'responses', path: '/v1/responses/input_tokens', body: RESPONSES },
  'messages': { protocol: 'messages', path: '/v1/messages', body: MESSAGES },
  'messages stream': { protocol: 'messages', path: '/v1/messages', body: withStream(MESSAGES) },
  'claude code': { protocol: 'messages', path: '/v1/messages?beta=true', body: recorded('claude-code-message') },
  'count_tokens': { protocol: 'messages', path: '/v1/messages/count_tokens', body: MESSAGES },
  'generate': { protocol: 'generate', path: model('generateContent'), body: GENERATE },
  'generate stream': { protocol: 'generate', path: model('streamGenerateContent?alt=sse'), body: GENERATE },
  'generate array': { protocol: 'generate', path: model('streamGenerateContent'), body: GENERATE },
  'countTokens': { protocol: 'generate', path: model('countTokens'), body: { generateContentRequest: { model: `models/${MODEL}`, contents: [{ parts: [{ text: 'Hi' }] }] } } },
  'embedContent': { protocol: 'generate', path: model('embedContent'), body: { content: { parts: [{ text: 'Hi' }] }, taskType: 'RETRIEVAL_QUERY', outputDimensionality: 2 } },
  'batchEmbedContents': { protocol: 'generate', path: model('batchEmbedContents'), body: { requests: [{ model: `models/${MODEL}`, content: { parts: [{ text: 'Hi' }] } }, { model: `models/${MODEL}`, content: { parts: [{ text: 'Ho' }] }, title: 't' }] } },
  'interactions': { protocol: 'generate', path: '/v1beta/interactions', body: { model: MODEL, system_instruction: 'x', input: [{ type: 'text', text: 'Hi' }], stream: true } },
  'decisions': { protocol: 'responses', path: '/v1/decisions', body: { model: MODEL, input: 'x', questions: [{ text: 'q' }] } },
  'images': { protocol: 'chat', path: '/v1/images/generations', body: { model: MODEL, prompt: 'a bird', n: 2, size: '256x256', stream: false, partial_images: 1 } },
  'images stream': { protocol: 'chat', path: '/v1/images/generations', body: { model: MODEL, prompt: 'a bird', n: 1, stream: true } },
  'image edits': { protocol: 'chat', path: '/v1/images/edits', form: 'form', body: [field('model', MODEL), field('prompt', 'a bird'), field('n', '2'), { name: 'image[]', filename: 'a.png', type: 'image/png', value: 'PNG' }] },
  'transcriptions': { protocol: 'chat', path: '/v1/audio/transcriptions', form: 'form', body: [field('model', MODEL), field('response_format', 'json'), field('stream', 'false'), FILE] },
  'speech': { protocol: 'chat', path: '/v1/audio/speech', body: { model: MODEL, input: 'hello', voice: 'alloy', instructions: 'slow', stream_format: 'sse' } },
  'batches': { protocol: 'chat', path: '/v1/batches', body: { input_file_id: 'file-1', endpoint: '/v1/chat/completions', completion_window: '24h', metadata: { a: 'b' } } },
  'message batches': { protocol: 'messages', path: '/v1/messages/batches', body: { requests: [{ custom_id: 'a', params: MESSAGES }] } },
  'responses socket': { protocol: 'responses', path: '/v1/responses', form: 'socket', body: [{ type: 'response.create', ...RESPONSES as Record<string, Template> }, { type: 'response.create', stream_id: 's', model: MODEL, previous_response_id: 'resp_1', input: [] }] },
  'realtime socket': { protocol: 'chat', path: `/v1/realtime?model=${MODEL}`, form: 'socket', body: [
    { type: 'session.update', session: { type: 'realtime', model: MODEL, instructions: 'x', tools: [{ type: 'function', name: 'look', parameters: SCHEMA }], audio: { input: { transcription: { model: 'whisper-1' } } } } },
    { type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] } }, { type: 'input_audio_buffer.append', audio: 'AAAA' }, { type: 'response.create', response: { max_output_tokens: 9 } },
  ] },
}
