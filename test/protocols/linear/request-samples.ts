import type { JsonObject } from '../../../src/protocols/neutral/json.ts'

const SCHEMA = {
  type: 'object', description: 'A look', required: ['at'], additionalProperties: false, $defs: { place: { type: 'string', enum: ['here'] } },
  properties: { at: { anyOf: [{ type: 'integer', minimum: 1 }, { $ref: '#/$defs/place' }] }, all: { type: 'array', items: { type: 'string' }, minItems: 2 } },
}
const PNG = 'iVBORw0KGgo='
const LOOKED = '{"at":1,"all":["x"]}'

const chatCall = { id: 'call_1', type: 'function', function: { name: 'look', arguments: LOOKED } }
const chat: JsonObject = {
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }] },
    {
      role: 'user', name: 'ann', content: [
        { type: 'text', text: 'Look' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }, { type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' } },
        { type: 'unknown' },
      ],
    },
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }], tool_calls: [chatCall, { id: 'call_2', type: 'custom', custom: { name: 'run', input: 'ls' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'a bird' }, { type: 'image_url', image_url: { url: PNG } }] },
    { role: 'tool', tool_call_id: 'call_9', content: 'a bird' },
    { role: 'developer', content: 'In French.' },
  ],
  tools: [
    { type: 'function', function: { name: 'look', parameters: SCHEMA }, cache_control: { type: 'ephemeral' } }, { type: 'custom', custom: { name: 'run' } },
    { type: 'unknown' },
  ],
  tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'look' } }, { type: 'custom', custom: { name: 'run' } }] } },
  response_format: { type: 'json_schema', json_schema: { name: 'a', schema: SCHEMA } },
  stop: ['x'],
  metadata: { a: 'b' },
}

const responsesCall = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: LOOKED }
const responses: JsonObject = {
  instructions: 'Be brief.',
  input: [
    {
      type: 'message', role: 'user', content: [
        { type: 'input_text', text: 'Look' }, { type: 'input_image', image_url: `data:image/png;base64,${PNG}` },
        { type: 'input_file', file_data: 'data:application/pdf;base64,AAAA' }, { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        { type: 'unknown' },
      ],
    },
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }], content: [{ type: 'text', text: 'Hm.' }], encrypted_content: 'x' },
    { role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }, { type: 'refusal', refusal: 'No.' }] },
    responsesCall, { type: 'custom_tool_call', call_id: 'call_2', name: 'run', input: 'ls', namespace: 'shell' },
    { type: 'tool_search_call', call_id: 'call_3', execution: 'client', arguments: { query: 'x' } },
    { type: 'agent_message', content: [{ type: 'input_text', text: 'Look' }] },
    { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'a bird' }] },
    { type: 'custom_tool_call_output', call_id: 'call_9', output: 'a bird' },
    { type: 'tool_search_output', call_id: 'call_3', execution: 'client', tools: [{ type: 'function', name: 'found', parameters: SCHEMA }] },
    { type: 'additional_tools', tools: [{ type: 'namespace', name: 'more', tools: [{ type: 'function', name: 'added' }] }] },
    { type: 'unknown' },
  ],
  tools: [
    { type: 'function', name: 'look', parameters: SCHEMA }, { type: 'custom', name: 'run' }, { type: 'tool_search', execution: 'client' },
    { type: 'namespace', name: 'shell', tools: [{ type: 'custom', name: 'run' }] }, { type: 'unknown' },
  ],
  tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }, { type: 'custom', name: 'run' }] },
  text: { format: { type: 'json_schema', name: 'a', schema: SCHEMA } },
  include: ['reasoning.encrypted_content'],
  metadata: { a: 'b' },
}

const messages: JsonObject = {
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
  messages: [
    {
      role: 'user', content: [
        { type: 'text', text: 'Look' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG }, cache_control: { type: 'ephemeral' } },
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
        { type: 'document', title: 'a', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'A page' }] } },
        { type: 'search_result', title: 'a', source: 'b', content: [{ type: 'text', text: 'A page' }] }, { type: 'unknown' },
      ],
    },
    {
      role: 'assistant', content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'x' }, { type: 'redacted_thinking', data: 'x' }, { type: 'compaction', content: 'So far.' },
        { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 } },
      ],
    },
    {
      role: 'user', content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'a bird' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }] },
        { type: 'tool_result', tool_use_id: 'toolu_9', content: 'a bird', is_error: true },
      ],
    },
  ],
  tools: [{ name: 'look', input_schema: SCHEMA, strict: true, cache_control: { type: 'ephemeral' } }, { type: 'unknown', name: 'x' }],
  tool_choice: { type: 'any' },
  output_config: { format: { type: 'json_schema', schema: SCHEMA } },
  stop_sequences: ['x'],
  max_tokens: 9000,
}

const generate: JsonObject = {
  systemInstruction: { parts: [{ text: 'Be brief.' }] },
  contents: [
    {
      role: 'user', parts: [
        { text: 'Look' }, { inlineData: { mimeType: 'image/png', data: PNG } }, { inlineData: { mimeType: 'audio/wav', data: 'AAAA' } },
        { inlineData: { mimeType: 'application/pdf', data: 'AAAA' } }, { fileData: { fileUri: 'https://example.com/a.png', mimeType: 'image/png' } }, { unknown: true },
      ],
    },
    {
      role: 'model', parts: [
        { text: 'Hm.', thought: true, thoughtSignature: 'x' }, { text: 'I look.' }, { functionCall: { id: 'call_1', name: 'look', args: { at: 1 } } },
        { functionCall: { name: 'run', args: { at: 1 } } },
      ],
    },
    {
      role: 'user', parts: [
        { functionResponse: { id: 'call_1', name: 'look', response: { output: 'a bird' }, parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] } },
        { functionResponse: { name: 'run', response: { a: 'bird' } } }, { functionResponse: { id: 'call_9', name: 'none', response: { a: 'bird' } } },
      ],
    },
  ],
  tools: [{ functionDeclarations: [{ name: 'look', parameters: SCHEMA }, { name: 'run', parametersJsonSchema: SCHEMA }] }],
  toolConfig: { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames: ['look'] } },
  generationConfig: { stopSequences: ['x'], responseMimeType: 'application/json', responseSchema: SCHEMA },
  labels: { a: 'b' },
}

/** A request of each protocol with everything that its reader knows. */
export const REQUESTS: Readonly<Record<string, JsonObject>> = { chat, responses, messages, generate }

/** Words that a reader knows and no sample can contain, because they are refused or exclude another word. */
export const NOT_IN_REQUESTS: ReadonlySet<string> = new Set([
  'chat: json_object', 'responses: json_object', 'responses: item_reference', 'responses: compaction', 'responses: compaction_summary',
  'responses: compaction_trigger', 'messages: tool', 'messages: file',
  'generate: ANY', 'generate: NONE', 'generate: VALIDATED',
])
