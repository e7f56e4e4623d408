import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { sealed } from '../../support/capsules.ts'
import { PROVIDER, requestBetween } from '../../support/translation.ts'

const toGenerate = (body: JsonObject, model = 'gemini-3-pro'): ReturnType<typeof requestBetween> => requestBetween('chat', 'generate', body, model)
const user = (content: unknown): JsonObject => ({ role: 'user', content })
const call = (id: string, name: string): JsonObject => ({ id, type: 'function', function: { name, arguments: '{"x":1}' } })
const calls = (...tool_calls: JsonObject[]): JsonObject => ({ role: 'assistant', content: null, tool_calls })
const result = (tool_call_id: string, content: string): JsonObject => ({ role: 'tool', tool_call_id, content })

t.test('instructions, sampling and limits become a Gemini request', async t => {
  const { body, path, dropped } = toGenerate({
    stream: true, messages: [{ role: 'system', content: 'Be brief.' }, user('Hi')], max_tokens: 5, temperature: 2, top_p: 0.5, seed: 1,
    stop: ['a'], presence_penalty: 1, frequency_penalty: 1, reasoning_effort: 'low', parallel_tool_calls: false, service_tier: 'flex',
  })
  t.equal(path, '/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse')
  t.strictSame(body, {
    systemInstruction: { parts: [{ text: 'Be brief.' }] }, contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
    generationConfig: {
      maxOutputTokens: 5, stopSequences: ['a'], temperature: 2, topP: 0.5, presencePenalty: 1, frequencyPenalty: 1, seed: 1,
      thinkingConfig: { includeThoughts: true, thinkingLevel: 'low' },
    },
    serviceTier: 'flex',
  })
  t.strictSame(dropped, ['parallel_tool_calls'])
})

t.test('a Gemini request has one result for each call, in the order of the calls and with the name of the call', async t => {
  const { body } = toGenerate({ messages: [user('Go'), calls(call('a', 'f'), call('b', 'g'), call('c', 'f')), result('c', 'three'), result('a', 'one'), user('And?')] })
  t.strictSame((body['contents'] as JsonObject[]).slice(1), [
    { role: 'model', parts: [
      { functionCall: { id: 'a', name: 'f', args: { x: 1 } }, thoughtSignature: 'skip_thought_signature_validator' },
      { functionCall: { id: 'b', name: 'g', args: { x: 1 } } }, { functionCall: { id: 'c', name: 'f', args: { x: 1 } } },
    ] },
    { role: 'user', parts: [
      { functionResponse: { id: 'a', name: 'f', response: { output: 'one' } } },
      { functionResponse: { id: 'b', name: 'g', response: { error: 'There is no result.' } } },
      { functionResponse: { id: 'c', name: 'f', response: { output: 'three' } } },
      { text: 'And?' },
    ] },
  ])
})

t.test('a call is sent with its own signature, but never with a signature of another provider', async t => {
  const id = (provider: string): string => sealed('tool_id', { id: 'a', opaque: { provider, value: 'SIG' } })
  const contentsOf = (given: string, model?: string): unknown => (toGenerate({ messages: [user('Go'), calls(call(given, 'f')), result(given, 'one')] }, model).body['contents'] as JsonObject[])[1]
  t.match(contentsOf(id(PROVIDER)), { parts: [{ functionCall: { id: 'a' }, thoughtSignature: 'SIG' }] })
  t.match(contentsOf(id('other')), { parts: [{ thoughtSignature: 'skip_thought_signature_validator' }] })
  t.notMatch(JSON.stringify(contentsOf(id('other'), 'gemini-2.5-flash')), /thoughtSignature/)
})

t.test('schema keywords that Gemini refuses become descriptions', async t => {
  const parameters = {
    $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', additionalProperties: false,
    properties: { const: { const: 'x' }, pattern: { type: 'string', pattern: '^a', description: 'P' }, $schema: { type: 'string', default: 'y' }, ref: { $ref: '#/definitions/d' } },
    definitions: { d: { type: 'integer', exclusiveMinimum: 0 } },
  }
  const { body } = toGenerate({ messages: [user('Go')], tools: [{ type: 'function', function: { name: 'f', parameters } }], tool_choice: 'required' })
  t.strictSame(body['tools'], [{ functionDeclarations: [{ name: 'f', description: 'f', parametersJsonSchema: {
    type: 'object', additionalProperties: false,
    properties: { const: { enum: ['x'] }, pattern: { type: 'string', description: 'P\n\n{pattern: "^a"}' }, $schema: { type: 'string' }, ref: { $ref: '#/$defs/d' } },
    $defs: { d: { type: 'integer', description: '{exclusiveMinimum: 0}' } },
  } }] }])
  t.strictSame(body['toolConfig'], { functionCallingConfig: { mode: 'ANY' } })
})

t.test('structured output, images and documents become parts of a Gemini request', async t => {
  const { body } = toGenerate({
    messages: [user([
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }, { type: 'image_url', image_url: { url: 'https://a/b.jpg' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,BBBB' } }, { type: 'input_audio', input_audio: { data: 'CCCC', format: 'wav' } },
    ])],
    response_format: { type: 'json_schema', json_schema: { name: 'r', schema: { type: 'object' } } },
  })
  t.strictSame(body, {
    contents: [{ role: 'user', parts: [
      { inlineData: { mimeType: 'image/png', data: 'AAAA' } }, { fileData: { fileUri: 'https://a/b.jpg', mimeType: 'image/jpeg' } },
      { inlineData: { mimeType: 'application/pdf', data: 'BBBB' } }, { inlineData: { mimeType: 'audio/wav', data: 'CCCC' } },
    ] }],
    generationConfig: { responseMimeType: 'application/json', responseJsonSchema: { type: 'object' } },
  })
})

t.test('thinking becomes a budget for models before Gemini 3, and a level for Gemini 3', async t => {
  const thinking = (body: JsonObject, model: string): unknown => (
    requestBetween('messages', 'generate', { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], ...body }, model).body['generationConfig'] as JsonObject
  )['thinkingConfig']
  t.strictSame(thinking({ thinking: { type: 'enabled', budget_tokens: 2000 } }, 'gemini-2.5-pro'), { includeThoughts: true, thinkingBudget: 2000 })
  t.strictSame(thinking({ thinking: { type: 'enabled', budget_tokens: 2000 } }, 'gemini-3-pro'), { includeThoughts: true, thinkingLevel: 'low' })
  t.strictSame(thinking({ thinking: { type: 'disabled' } }, 'gemini-2.5-flash'), { thinkingBudget: 0 })
})
