import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { sealed } from '../../support/capsules.ts'
import { PROVIDER, requestBetween } from '../../support/translation.ts'

const toChat = (body: JsonObject): ReturnType<typeof requestBetween> => requestBetween('generate', 'chat', body)
const user = (...parts: JsonObject[]): JsonObject => ({ role: 'user', parts })
const model = (...parts: JsonObject[]): JsonObject => ({ role: 'model', parts })
const call = (name: string, args: JsonObject = {}, more: JsonObject = {}): JsonObject => ({ functionCall: { name, args }, ...more })
const result = (name: string, response: JsonObject, more: JsonObject = {}): JsonObject => ({ functionResponse: { name, response, ...more } })

t.test('instructions, sampling and limits are read, also in snake case', async t => {
  const { body, dropped } = toChat({
    system_instruction: { parts: [{ text: 'Be brief.' }] }, contents: [user({ text: 'Hi' }), model({ text: 'Hello' }), user({ text: 'Bye' })],
    generation_config: { max_output_tokens: 5, stopSequences: ['a'], temperature: 0.5, topP: 0.9, topK: 3, candidateCount: 1, seed: 1, thinkingConfig: { thinkingLevel: 'LOW' } },
    safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'OFF' }], labels: { a: 'b' },
  })
  t.strictSame(body, {
    model: 'upstream-model',
    messages: [
      { role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello' }, { role: 'user', content: 'Bye' },
    ],
    max_tokens: 5, stop: ['a'], temperature: 0.5, top_p: 0.9, seed: 1, reasoning_effort: 'low',
  })
  t.strictSame(dropped, ['generationConfig.topK', 'safetySettings', 'labels'])
})

t.test('a single object counts as a list of one', async t => {
  const { body } = toChat({
    system_instruction: { parts: { text: 'Be brief.' } }, contents: { parts: { text: 'Hi' } }, tools: { functionDeclarations: { name: 'f' } },
  })
  t.strictSame(body['messages'], [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hi' }])
  t.match(body['tools'], [{ function: { name: 'f' } }])
})

t.test('results of calls without ids are paired by name and order', async t => {
  const { body } = toChat({ contents: [
    user({ text: 'Go' }), model(call('f', { n: 1 }), call('g'), call('f', { n: 2 })),
    user(result('f', { output: 'one' }), result('f', { output: 'two' }), result('g', { error: 'no' })),
  ] })
  const [, assistant, ...results] = body['messages'] as [JsonObject, { tool_calls: JsonObject[] }, ...JsonObject[]]
  const ids = assistant.tool_calls.map(({ id }) => id)
  t.equal(new Set(ids).size, 3)
  t.strictSame(results.map(({ tool_call_id, content }) => [tool_call_id, content]), [[ids[0], 'one'], [ids[2], 'two'], [ids[1], 'Error: no']])
})

t.test('a result that is an object becomes JSON, and its media are kept', async t => {
  const { body } = toChat({ contents: [
    user({ text: 'Go' }), model(call('f', {}, {})),
    user(result('f', { rows: [1], output: 'x' }, { parts: [{ inlineData: { mimeType: 'image/png', data: '-_8=' } }] })),
  ] })
  t.match((body['messages'] as JsonObject[]).slice(2), [
    { role: 'tool', content: '{"rows":[1],"output":"x"}' }, { role: 'user', content: [{}, { type: 'image_url', image_url: { url: 'data:image/png;base64,+/8=' } }] },
  ])
})

t.test('a Gemini schema becomes JSON Schema', async t => {
  const { body, dropped } = toChat({
    contents: [user({ text: 'Go' })],
    tools: [{ functionDeclarations: [{ name: 'f', description: 'd', parameters: {
      type: 'OBJECT', properties: { type: { type: 'STRING', nullable: true }, list: { type: 'ARRAY', minItems: '1', items: { type: 'INTEGER' } } }, required: ['type'],
    } }] }, { googleSearch: {} }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
    generationConfig: { responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', properties: { a: { type: 'STRING' } } } },
  })
  t.match(body, {
    tools: [{ function: { name: 'f', parameters: {
      type: 'object', properties: { type: { type: ['string', 'null'] }, list: { type: 'array', minItems: 1, items: { type: 'integer' } } }, required: ['type'],
    } } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    response_format: { type: 'json_schema', json_schema: { schema: { type: 'object', properties: { a: { type: 'string' } } } } },
  })
  t.strictSame(dropped, ['tools[].googleSearch'])
})

t.test('thinking in the signature of a call goes back only to its provider', async t => {
  const opaque = { provider: PROVIDER, value: 'sig' }
  const thoughtSignature = sealed('opaque_value', { thinking: [{ text: 'Hm.', opaque }] })
  const contents = [user({ text: 'Go' }), model({ text: 'Hm.', thought: true }, call('f', {}, { thoughtSignature })), user(result('f', {}))]
  t.match((requestBetween('generate', 'messages', { contents }).body['messages'] as JsonObject[])[1], {
    content: [{ type: 'thinking', thinking: 'Hm.', signature: 'sig' }, { type: 'tool_use', name: 'f' }],
  })
  const other = requestBetween('generate', 'messages', { contents }, 'm', 'another')
  t.notMatch(JSON.stringify(other.body), /sig|Hm/)
})

t.test('responseFormat is read like responseMimeType and responseJsonSchema', async t => {
  const schema = { type: 'object', properties: { unit_price: { type: 'number' } } }
  const { body, dropped } = toChat({ contents: [user({ text: 'Hi' })], generationConfig: { responseFormat: [{ text: { mimeType: 'application/json', schema } }] } })
  t.match(body['response_format'], { type: 'json_schema', json_schema: { schema } })
  t.strictSame(dropped, [])
  t.throws(() => toChat({ contents: [], generationConfig: { response_format: [{ image: {} }] } }), { code: 'not_translatable' })
})

t.test('Google files, cached content and several candidates are refused', async t => {
  t.throws(() => toChat({ contents: [user({ fileData: { fileUri: 'gs://b/x.pdf', mimeType: 'application/pdf' } })] }), { code: 'not_translatable' })
  t.throws(() => toChat({ contents: [], cachedContent: 'cachedContents/1' }), { code: 'not_translatable' })
  t.throws(() => toChat({ contents: [], generationConfig: { candidateCount: 2 } }), { code: 'not_translatable' })
})
