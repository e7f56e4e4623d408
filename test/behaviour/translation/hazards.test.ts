import t from 'tap'
import { asList, asObject } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { bodyBetween, dataOf, requestBetween, sse, streamBetween } from '../../support/translation.ts'
import { MESSAGE_START, chatChunks, chatStream, messageEnd, messagesEvents, textBlock } from '../../support/translating-gateway.ts'

/*
 * What other gateways get wrong between protocols, by its name, for every pair of protocols. What concerns one protocol alone
 * is in the tests of its folder.
 */

const PROTOCOLS = ['chat', 'responses', 'messages', 'generate']
const others = (name: string): string[] => PROTOCOLS.filter(other => other !== name)
const json = (value: unknown): string => JSON.stringify(value)

const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
const PDF = 'JVBERi0xLjcK'
const SCHEMA = { type: 'object', properties: { at: { type: 'integer' } }, required: ['at'] }

/** Requests of a protocol, each for one test. */
interface Clients {
  /** A turn with a tool result of image and document, and a later system message if the protocol has such messages. */
  readonly toolTurn: JsonObject
  readonly structured: JsonObject
  /** Parallel calls are disabled. */
  readonly oneCall: JsonObject
}

const chatTool = { type: 'function', function: { name: 'look', parameters: SCHEMA } }
const CLIENTS: Readonly<Record<string, Clients>> = {
  chat: {
    toolTurn: { messages: [
      { role: 'user', content: 'Look' }, { role: 'assistant', content: null, tool_calls: [{ id: 'functions.look:0', type: 'function', function: { name: 'look', arguments: '' } }] },
      { role: 'tool', tool_call_id: 'functions.look:0', content: 'seen' }, { role: 'user', content: [
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }, { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` } },
      ] },
    ], tools: [chatTool] },
    structured: { messages: [{ role: 'user', content: 'Hi' }], response_format: { type: 'json_schema', json_schema: { name: 'out', schema: SCHEMA, strict: true } } },
    oneCall: { messages: [{ role: 'user', content: 'Hi' }], tools: [chatTool], parallel_tool_calls: false },
  },
  responses: {
    toolTurn: { input: [
      { role: 'user', content: 'Look' }, { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: [
        { type: 'input_text', text: 'seen' }, { type: 'input_image', image_url: `data:image/png;base64,${PNG}` }, { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
      ] },
    ], tools: [{ type: 'function', name: 'look', parameters: SCHEMA, strict: false }] },
    structured: { input: 'Hi', text: { format: { type: 'json_schema', name: 'out', schema: SCHEMA, strict: true } } },
    oneCall: { input: 'Hi', tools: [{ type: 'function', name: 'look', parameters: SCHEMA, strict: false }], parallel_tool_calls: false },
  },
  messages: {
    toolTurn: { max_tokens: 9, messages: [
      { role: 'user', content: 'Look' }, { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [
        { type: 'text', text: 'seen' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF } },
      ] }] },
    ], tools: [{ name: 'look', input_schema: SCHEMA }] },
    structured: { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
    oneCall: { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], tools: [{ name: 'look', input_schema: SCHEMA }], tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
  },
  generate: {
    toolTurn: { contents: [
      { role: 'user', parts: [{ text: 'Look' }] }, { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'seen' }, parts: [
        { inlineData: { mimeType: 'image/png', data: PNG } }, { inlineData: { mimeType: 'application/pdf', data: PDF } },
      ] } }] },
    ], tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: SCHEMA }] }] },
    structured: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }], generationConfig: { responseMimeType: 'application/json', responseJsonSchema: SCHEMA } },
    oneCall: {},
  },
}

for (const [from, { toolTurn, structured, oneCall }] of Object.entries(CLIENTS)) {
  for (const to of others(from)) {
    t.test(`${from} -> ${to}: images and documents in tool results are kept`, async t => {
      const { body, dropped } = requestBetween(from, to, toolTurn, 'gemini-3-pro')
      for (const content of ['seen', PNG, PDF]) t.match(json(body), content)
      t.strictSame(dropped, [])
    })

    t.test(`${from} -> ${to}: a tool result refers to its call by id or name`, async t => {
      const { body } = requestBetween(from, to, toolTurn, 'gemini-3-pro')
      const text = json(body)
      const ids = {
        chat: [/"tool_calls":\[\{"id":"([^"]+)"/, /"tool_call_id":"([^"]+)"/], responses: [/"type":"function_call","call_id":"([^"]+)"/, /"function_call_output","call_id":"([^"]+)"/],
        messages: [/"type":"tool_use","id":"([\w-]+)"/, /"tool_use_id":"([\w-]+)"/], generate: [/"functionCall":\{(?:"id":"[^"]*",)?"name":"(\w+)"/, /"functionResponse":\{(?:"id":"[^"]*",)?"name":"(\w+)"/],
      }[to] as [RegExp, RegExp]
      const [call, result] = ids.map(pattern => pattern.exec(text)?.[1])
      t.ok(call, text)
      t.equal(result, call)
    })

    t.test(`${from} -> ${to}: the schema of structured output is kept`, async t => {
      const { body, dropped } = requestBetween(from, to, structured, 'gemini-3-pro')
      t.match(json(body), json({ at: { type: 'integer' } }))
      t.strictSame(dropped, [])
    })

    if (from === 'generate') continue
    t.test(`${from} -> ${to}: disable_parallel_tool_use is translated, or reported as dropped`, async t => {
      const { body, dropped } = requestBetween(from, to, oneCall)
      if (to === 'generate') t.match(dropped, [/parallel/], 'the field has no counterpart and is reported as dropped')
      else t.match(json(body), to === 'messages' ? '"disable_parallel_tool_use":true' : '"parallel_tool_calls":false')
    })
  }
}

const gemini = (parts: readonly JsonObject[], more: JsonObject = {}, usage: JsonObject = {}): JsonObject => (
  { candidates: [{ content: { role: 'model', parts }, index: 0, ...more }], responseId: 'r', modelVersion: 'g', usageMetadata: { promptTokenCount: 7, ...usage } }
)

t.test('a thoughtSignature in a separate part is sent back in the next turn', async t => {
  const stream = sse(gemini([{ text: 'Hello.' }]), gemini([{ text: '', thoughtSignature: 'U0lH' }], { finishReason: 'STOP' }, { candidatesTokenCount: 2 }))
  const blocks = dataOf(streamBetween('messages', 'generate', [stream])).flatMap(event => asObject(event['content_block']) ?? [])
  t.match(blocks.map(block => asObject(block)?.['type']), ['text', 'redacted_thinking'])
  const content = [{ type: 'text', text: 'Hello.' }, blocks[1] as JsonObject]
  const { body } = requestBetween('messages', 'generate', { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content }, { role: 'user', content: 'And?' }] }, 'gemini-3-pro')
  t.match(json(asList(body['contents'])[1]), '"thoughtSignature":"U0lH"', 'the next turn has it')
})

t.test('finishReason STOP of Gemini after a tool call becomes tool_use or tool_calls', async t => {
  const call = gemini([{ functionCall: { name: 'look', args: { at: 1 } } }], { finishReason: 'STOP' }, { candidatesTokenCount: 2 })
  t.match(bodyBetween('messages', 'generate', call), { stop_reason: 'tool_use' })
  t.match(bodyBetween('chat', 'generate', call), { choices: [{ finish_reason: 'tool_calls' }] })
})

/** Pieces of arguments that end inside of an escape, and next to a UTF-8 character. */
const PIECES = ['{"at":"\\u00', 'e9 ', '\\', '"\\ud83d', '\\ude00"}']
const ARGUMENTS = { at: 'é "😀' }

t.test('tool call arguments that are split inside UTF-8 or escape sequences are kept', async t => {
  const chat = chatStream(
    { delta: { role: 'assistant', tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }] } },
    ...PIECES.map(text => ({ delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } })), { delta: {}, finish_reason: 'tool_calls' },
  )
  const messages = messagesEvents(
    MESSAGE_START, { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} } },
    ...PIECES.map(partial_json => ({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json } })), { type: 'content_block_stop', index: 0 },
    ...messageEnd('tool_use'),
  )
  const argumentsIn = {
    chat: (events: JsonObject[]) => events.map(event => /"arguments":("(?:[^"\\]|\\.)*")/.exec(json(event))?.[1]).map(text => text === undefined ? '' : JSON.parse(text) as string).join(''),
    messages: (events: JsonObject[]) => events.map(({ delta }) => asObject(delta)?.['partial_json'] ?? '').join(''),
    generate: (events: JsonObject[]) => json(events.map(event => (JSON.stringify(event).includes('functionCall') ? asObject(asObject(asList(asObject(asObject(asList(event['candidates'])[0])?.['content'])?.['parts'])[0])?.['functionCall'])?.['args'] : null)).find(args => args)),
    responses: (events: JsonObject[]) => String(events.find(({ type }) => type === 'response.function_call_arguments.done')?.['arguments']),
  }
  for (const [from, stream] of [['chat', chat], ['messages', messages]] as const) {
    const bytes = Buffer.from(stream)
    // Each byte in a separate chunk, so that no multibyte character is complete.
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
    for (const [to, read] of Object.entries(argumentsIn)) {
      if (to === from) continue
      for (const chunks of [[bytes], single]) t.strictSame(JSON.parse(read(dataOf(streamBetween(to, from, chunks)))), ARGUMENTS, `${from} -> ${to}`)
    }
  }
})

t.test('empty tool call arguments become an empty object, in streams and bodies', async t => {
  const block = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }
  const messages = messagesEvents(MESSAGE_START, { type: 'content_block_start', index: 0, content_block: block }, { type: 'content_block_stop', index: 0 }, ...messageEnd('tool_use'))
  const chat = chatStream({ delta: { role: 'assistant', tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }] } }, { delta: {}, finish_reason: 'tool_calls' })
  t.match(streamBetween('chat', 'messages', [Buffer.from(messages)]), '"arguments":"{}"')
  t.match(streamBetween('responses', 'messages', [Buffer.from(messages)]), '"arguments":"{}"')
  t.match(streamBetween('responses', 'chat', [Buffer.from(chat)]), '"arguments":"{}"')
  t.match(streamBetween('generate', 'chat', [Buffer.from(chat)]), '"args":{}')
  t.match(bodyBetween('chat', 'messages', { ...MESSAGE_START.message, content: [block], stop_reason: 'tool_use' }), { choices: [{ message: { tool_calls: [{ function: { arguments: '{}' } }] } }] })
})

t.test('message_start has the usage if it is known, otherwise message_delta has it', async t => {
  const stream = sse(gemini([{ text: 'Hel' }]), gemini([{ text: 'lo' }], { finishReason: 'STOP' }, { candidatesTokenCount: 2 }))
  const [start] = dataOf(streamBetween('messages', 'generate', [stream]))
  t.match(start, { type: 'message_start', message: { usage: { input_tokens: 7 } } })
  // Chat upstreams report input tokens at the end, so they are in message_delta, which SDKs read.
  const chat = chatStream({ delta: { role: 'assistant', content: 'Hi' } }, { delta: {}, finish_reason: 'stop' }, { usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } } })
  const delta = dataOf(streamBetween('messages', 'chat', [Buffer.from(chat)])).find(({ type }) => type === 'message_delta')
  t.match(delta, { usage: { input_tokens: 5, cache_read_input_tokens: 4, output_tokens: 2 } })
})

t.test('a delta that arrives after the end never follows the stop event', async t => {
  const late = chatChunks({ delta: { role: 'assistant', content: 'Hi' } }, { delta: {}, finish_reason: 'stop' }, { delta: { content: ' late' } }) + 'data: [DONE]\n\n'
  const types = dataOf(streamBetween('messages', 'chat', [Buffer.from(late)])).map(({ type }) => type)
  t.strictSame(types.slice(-2), ['message_delta', 'message_stop'], 'a late delta comes before the stop event')
  const messages = messagesEvents(MESSAGE_START, ...textBlock(0, 'Hi'), ...messageEnd(), ...textBlock(1, 'late'))
  for (const to of ['chat', 'responses', 'generate']) t.notMatch(streamBetween(to, 'messages', [Buffer.from(messages)]), 'late', to)
})

t.test('cached and reasoning tokens are counted once, and never below zero', async t => {
  const USED = { input: 100, cached: 60, output: 30, reasoning: 20 }
  const bodies: Readonly<Record<string, JsonObject>> = {
    chat: { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }], usage: { prompt_tokens: 100, prompt_tokens_details: { cached_tokens: 60 }, completion_tokens: 30, completion_tokens_details: { reasoning_tokens: 20 } } },
    responses: { id: 'r', status: 'completed', output: [], usage: { input_tokens: 100, input_tokens_details: { cached_tokens: 60 }, output_tokens: 30, output_tokens_details: { reasoning_tokens: 20 } } },
    messages: { ...MESSAGE_START.message, content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn', usage: { input_tokens: 40, cache_read_input_tokens: 60, cache_creation_input_tokens: 0, output_tokens: 30, output_tokens_details: { thinking_tokens: 20 } } },
    generate: gemini([{ text: 'Hi' }], { finishReason: 'STOP' }, { promptTokenCount: 100, cachedContentTokenCount: 60, candidatesTokenCount: 10, thoughtsTokenCount: 20, totalTokenCount: 130 }),
  }
  const expected: Readonly<Record<string, JsonObject>> = {
    chat: { usage: { prompt_tokens: USED.input, total_tokens: 130, prompt_tokens_details: { cached_tokens: USED.cached }, completion_tokens: USED.output, completion_tokens_details: { reasoning_tokens: USED.reasoning } } },
    responses: { usage: { input_tokens: 100, input_tokens_details: { cached_tokens: 60 }, output_tokens: 30, output_tokens_details: { reasoning_tokens: 20 }, total_tokens: 130 } },
    messages: { usage: { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 30 } },
    generate: { usageMetadata: { promptTokenCount: 100, cachedContentTokenCount: 60, candidatesTokenCount: 10, thoughtsTokenCount: 20, totalTokenCount: 130 } },
  }
  for (const [from, body] of Object.entries(bodies)) {
    for (const to of others(from)) t.match(bodyBetween(to, from, body), expected[to] as JsonObject, `${from} -> ${to}`)
  }
  const odd = { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }], usage: { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 9 }, completion_tokens: 1 } }
  const { usage } = bodyBetween('messages', 'chat', odd)
  t.match(usage, { input_tokens: 5, cache_read_input_tokens: 0 }, 'a server that reports more cached tokens than there are')
})

t.test('empty messages are dropped, and consecutive messages of one role are merged', async t => {
  const chat = { messages: [{ role: 'user', content: 'a' }, { role: 'user', content: '' }, { role: 'assistant', content: '' }, { role: 'user', content: 'b' }] }
  t.strictSame(asList(requestBetween('chat', 'messages', chat).body['messages']).map(message => asObject(message)?.['role']), ['user'])
  t.strictSame(asList(requestBetween('chat', 'generate', chat).body['contents']), [{ role: 'user', parts: [{ text: 'a' }, { text: 'b' }] }])
})

t.test('system or developer messages in mid-conversation keep their position', async t => {
  const conversation = [{ role: 'system', content: 'first' }, { role: 'user', content: 'a' }, { role: 'developer', content: 'between' }, { role: 'user', content: 'b' }]
  for (const to of others('chat')) {
    const text = json(requestBetween('chat', to, { messages: conversation }).body)
    const at = ['"a"', 'between', '"b"'].map(part => text.indexOf(part))
    t.ok(at.every((place, n) => place > (at[n - 1] ?? -1)), `${to}: ${text}`)
  }
  const input = [{ role: 'user', content: 'a' }, { role: 'developer', content: 'between' }, { role: 'user', content: 'b' }]
  for (const to of others('responses')) {
    const text = json(requestBetween('responses', to, { input }).body)
    const at = ['"a"', 'between', '"b"'].map(part => text.indexOf(part))
    t.ok(at.every((place, n) => place > (at[n - 1] ?? -1)), `${to}: ${text}`)
  }
})

t.test('stop reasons are translated: refusal, pause_turn, context window, content filter', async t => {
  const message = (stop_reason: string, more: JsonObject = {}): JsonObject => ({ ...MESSAGE_START.message, content: [{ type: 'text', text: 'Hi' }], stop_reason, ...more })
  const chat = (finish_reason: string, more: JsonObject = {}): JsonObject => ({ choices: [{ index: 0, finish_reason, message: { role: 'assistant', content: 'Hi', ...more } }] })
  const stops: readonly (readonly [from: string, body: JsonObject, to: string, expected: JsonObject])[] = [
    ['messages', message('refusal'), 'chat', { choices: [{ finish_reason: 'content_filter' }] }],
    ['messages', message('refusal'), 'generate', { candidates: [{ finishReason: 'SAFETY' }] }],
    ['messages', message('pause_turn'), 'chat', { choices: [{ finish_reason: 'stop' }] }],
    ['messages', message('pause_turn'), 'responses', { status: 'completed' }],
    ['messages', message('model_context_window_exceeded'), 'chat', { choices: [{ finish_reason: 'length' }] }],
    ['messages', message('model_context_window_exceeded'), 'responses', { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }],
    ['messages', message('model_context_window_exceeded'), 'generate', { candidates: [{ finishReason: 'MAX_TOKENS' }] }],
    ['chat', chat('content_filter'), 'messages', { stop_reason: 'refusal' }],
    ['chat', chat('content_filter'), 'responses', { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }],
    ['chat', chat('content_filter'), 'generate', { candidates: [{ finishReason: 'SAFETY' }] }],
    ['chat', chat('stop', { content: null, refusal: 'No.' }), 'messages', { stop_reason: 'refusal' }],
    ['generate', gemini([], { finishReason: 'SAFETY' }), 'messages', { stop_reason: 'refusal' }],
    ['generate', gemini([], { finishReason: 'SAFETY' }), 'chat', { choices: [{ finish_reason: 'content_filter' }] }],
    ['generate', gemini([{ text: 'Hi' }], { finishReason: 'MAX_TOKENS' }), 'messages', { stop_reason: 'max_tokens' }],
  ]
  for (const [from, body, to, expected] of stops) t.match(bodyBetween(to, from, body), expected, `${from} -> ${to}: ${json(expected)}`)
})

t.test('instructions and a developer message become one system message', async t => {
  const input = [{ role: 'developer', content: 'Permissions.' }, { role: 'user', content: 'Hi' }]
  t.strictSame(requestBetween('responses', 'chat', { instructions: 'You are Codex.', input }).body['messages'], [
    { role: 'system', content: 'You are Codex.\n\nPermissions.' }, { role: 'user', content: 'Hi' },
  ])
})

t.test('temperature: 1 is dropped for reasoning models, because they refuse any temperature', async t => {
  const body = { max_tokens: 99, temperature: 1, messages: [{ role: 'user', content: 'Hi' }] }
  t.notOk('temperature' in requestBetween('messages', 'responses', body, 'gpt-5.1').body)
  t.equal(requestBetween('messages', 'responses', body, 'llama').body['temperature'], 1)
  t.equal(requestBetween('messages', 'responses', { ...body, temperature: 0.5 }, 'gpt-5.1').body['temperature'], 0.5, 'the upstream refuses another temperature')
})

t.test('dropped fields of a tool are reported', async t => {
  const tools: Readonly<Record<string, readonly [body: JsonObject, named: string]>> = {
    messages: [{ max_tokens: 9, messages: [], tools: [{ name: 'look', input_schema: SCHEMA, input_examples: [{ at: 1 }], eager_input_streaming: true }] }, 'tools[].input_examples'],
    responses: [{ input: 'Hi', tools: [{ type: 'function', name: 'look', parameters: SCHEMA, strict: false, output_schema: SCHEMA, allowed_callers: ['direct'] }] }, 'tools[].output_schema'],
    generate: [{ contents: [], tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: SCHEMA, responseJsonSchema: SCHEMA }] }] }, 'tools[].functionDeclarations[].responseJsonSchema'],
  }
  for (const [from, [body, named]] of Object.entries(tools)) {
    for (const to of others(from)) t.strictSame(requestBetween(from, to, body).dropped, [named], `${from} -> ${to}`)
  }
})
