import type Anthropic from '@anthropic-ai/sdk'
import type { Content, GenerateContentResponse } from '@google/genai'
import type OpenAI from 'openai'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { sse } from '../../support/translation.ts'
import {
  MESSAGE_START, anthropicClient, chatStream, genaiClient, messageEnd, messagesEvents, openaiClient, startTranslating, textBlock,
} from '../../support/translating-gateway.ts'
import type { Seen } from '../../support/translating-gateway.ts'

/** The parts of one turn that a client reads. */
interface Turn {
  readonly text: string
  readonly calls: readonly { readonly name: string, readonly args: unknown }[]
  /** Input and output tokens. */
  readonly tokens: readonly [number | undefined, number | undefined]
}

/** A client that sends a question, runs the tool, and sends the conversation with the result. */
type Client = (gateway: TestGateway, stream: boolean) => Promise<readonly [Turn, Turn]>

const SCHEMA = { type: 'object', properties: { at: { type: 'integer' } }, required: ['at'] }
const RESULT = 'a bird'

const chatClient: Client = async (gateway, stream) => {
  const { completions } = openaiClient(gateway).chat
  const tools: OpenAI.ChatCompletionTool[] = [{ type: 'function', function: { name: 'look', parameters: SCHEMA } }]
  const ask = async (messages: OpenAI.ChatCompletionMessageParam[]): Promise<[OpenAI.ChatCompletionMessage, Turn]> => {
    const params = { model: 'm', messages, tools, reasoning_effort: 'low' as const }
    const { choices, usage } = stream
      ? await completions.stream({ ...params, stream_options: { include_usage: true } }).finalChatCompletion()
      : await completions.create(params)
    const message = choices[0]?.message as OpenAI.ChatCompletionMessage
    const calls = (message.tool_calls ?? []).flatMap(call => call.type === 'function' ? [{ name: call.function.name, args: JSON.parse(call.function.arguments) as unknown }] : [])
    return [message, { text: message.content ?? '', calls, tokens: [usage?.prompt_tokens, usage?.completion_tokens] }]
  }
  const question = { role: 'user', content: 'Look' } as const
  const [message, first] = await ask([question])
  // Keeps only the standard fields, like a client that knows no other fields.
  const { content, tool_calls = [] } = message
  const results = tool_calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: RESULT }))
  const [, second] = await ask([question, { role: 'assistant', content, tool_calls }, ...results])
  return [first, second]
}

const messagesClient: Client = async (gateway, stream) => {
  const { messages: api } = anthropicClient(gateway)
  const tools = [{ name: 'look', input_schema: SCHEMA as Anthropic.Tool.InputSchema }]
  const ask = async (messages: Anthropic.MessageParam[]): Promise<[Anthropic.Message, Turn]> => {
    const params = { model: 'm', max_tokens: 9000, messages, tools, thinking: { type: 'enabled' as const, budget_tokens: 2000 } }
    const message = stream ? await api.stream(params).finalMessage() : await api.create(params)
    const calls = message.content.flatMap(block => block.type === 'tool_use' ? [{ name: block.name, args: block.input }] : [])
    const text = message.content.map(block => block.type === 'text' ? block.text : '').join('')
    return [message, { text, calls, tokens: [message.usage.input_tokens, message.usage.output_tokens] }]
  }
  const question = { role: 'user', content: 'Look' } as const
  const [message, first] = await ask([question])
  const results = message.content.flatMap(block => block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: RESULT }] : [])
  const [, second] = await ask([question, { role: 'assistant', content: message.content }, { role: 'user', content: results }])
  return [first, second]
}

const responsesClient: Client = async (gateway, stream) => {
  const { responses: api } = openaiClient(gateway)
  const tools = [{ type: 'function' as const, name: 'look', parameters: SCHEMA, strict: false }]
  const ask = async (input: OpenAI.Responses.ResponseInput): Promise<[OpenAI.Responses.Response, Turn]> => {
    const params = { model: 'm', input, tools, store: false, reasoning: { effort: 'low' as const, summary: 'auto' as const }, include: ['reasoning.encrypted_content' as const] }
    const response = stream ? await api.stream(params).finalResponse() : await api.create(params)
    const calls = response.output.flatMap(item => item.type === 'function_call' ? [{ name: item.name, args: JSON.parse(item.arguments) as unknown }] : [])
    return [response, { text: response.output_text, calls, tokens: [response.usage?.input_tokens, response.usage?.output_tokens] }]
  }
  const question = { role: 'user', content: 'Look' } as const
  const [response, first] = await ask([question])
  const results = response.output.flatMap(item => item.type === 'function_call' ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: RESULT }] : [])
  const [, second] = await ask([question, ...response.output as OpenAI.Responses.ResponseInputItem[], ...results])
  return [first, second]
}

const generateClient: Client = async (gateway, stream) => {
  const { models } = genaiClient(gateway)
  const ask = async (contents: Content[]): Promise<[Content, Turn]> => {
    const params = { model: 'm', contents, config: { tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: SCHEMA }] }], thinkingConfig: { includeThoughts: true } } }
    const chunks: GenerateContentResponse[] = []
    if (stream) for await (const chunk of await models.generateContentStream(params)) chunks.push(chunk)
    else chunks.push(await models.generateContent(params))
    const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
    const calls = parts.flatMap(({ functionCall }) => functionCall ? [{ name: functionCall.name ?? '', args: functionCall.args }] : [])
    const text = parts.map(part => part.thought === true ? '' : part.text ?? '').join('')
    const usage = chunks.at(-1)?.usageMetadata
    // Gemini CLI drops thoughts.
    return [{ role: 'model', parts: parts.filter(part => part.thought !== true) }, {
      text, calls, tokens: [usage?.promptTokenCount, (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0)],
    }]
  }
  const question = { role: 'user', parts: [{ text: 'Look' }] }
  const [content, first] = await ask([question])
  const results = (content.parts ?? []).flatMap(({ functionCall }) => functionCall
    ? [{ functionResponse: { ...functionCall.id !== undefined && { id: functionCall.id }, name: functionCall.name ?? '', response: { output: RESULT } } }] : [])
  const [, second] = await ask([question, content, { role: 'user', parts: results }])
  return [first, second]
}

/** Turns of an upstream: the first thinks and calls the tool, the second responds with text. */
interface Upstream {
  readonly turns: readonly [stream: string, body: JsonObject][]
  /** Required parts of the second request: the upstream's opaque values, and the result with its call. */
  readonly second: JsonObject
}

const MESSAGE = MESSAGE_START.message
const THINKING = { type: 'thinking', thinking: 'Hm.', signature: 'SIG/+=' }
const messagesUpstream: Upstream = {
  turns: [[messagesEvents(
    MESSAGE_START, { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'SIG/+=' } }, { type: 'content_block_stop', index: 0 },
    ...textBlock(1, 'I ', 'look.'), { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"at"' } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: ':1}' } }, { type: 'content_block_stop', index: 2 },
    ...messageEnd('tool_use', 3),
  ), {
    ...MESSAGE, content: [THINKING, { type: 'text', text: 'I look.' }, { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 } }],
    stop_reason: 'tool_use', usage: { input_tokens: 7, output_tokens: 3 },
  }], [messagesEvents(MESSAGE_START, ...textBlock(0, 'A bird.'), ...messageEnd('end_turn', 3)), {
    ...MESSAGE, content: [{ type: 'text', text: 'A bird.' }], stop_reason: 'end_turn', usage: { input_tokens: 7, output_tokens: 3 },
  }]],
  second: { messages: [{}, { content: [THINKING, { text: 'I look.' }, { id: 'toolu_1', input: { at: 1 } }] }, { content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [{ text: RESULT }] }] }] },
}

const CHAT_USAGE = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
const CHAT_CALL = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }
const chatBody = (message: JsonObject, finish_reason: string): JsonObject => ({
  id: 'c', object: 'chat.completion', created: 1, model: 'chat-model', usage: CHAT_USAGE, choices: [{ index: 0, finish_reason, message: { role: 'assistant', ...message } }],
})
const chatUpstream: Upstream = {
  turns: [[chatStream(
    { delta: { role: 'assistant', reasoning_content: 'Hm.' } }, { delta: { content: 'I ' } }, { delta: { content: 'look.' } },
    { delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at"' } }] } },
    { delta: { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] } }, { delta: {}, finish_reason: 'tool_calls' }, { usage: CHAT_USAGE },
  ), chatBody({ reasoning_content: 'Hm.', content: 'I look.', tool_calls: [CHAT_CALL] }, 'tool_calls')], [
    chatStream({ delta: { role: 'assistant', content: 'A bird.' } }, { delta: {}, finish_reason: 'stop' }, { usage: CHAT_USAGE }), chatBody({ content: 'A bird.' }, 'stop'),
  ]],
  second: { messages: [{}, { content: 'I look.', reasoning_content: 'Hm.', tool_calls: [CHAT_CALL] }, { role: 'tool', tool_call_id: 'call_1', content: RESULT }] },
}

const REASONING = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'ENC' }
const TEXT_ITEM = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'I look.', annotations: [] }] }
const CALL_ITEM = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"at":1}', status: 'completed' }
const responseOf = (...output: JsonObject[]): JsonObject => ({
  id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed', error: null, incomplete_details: null, output,
  usage: { input_tokens: 7, input_tokens_details: { cached_tokens: 0 }, output_tokens: 3, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 10 },
})
const responseStream = (...output: JsonObject[]): string => sse(
  { type: 'response.created', response: { ...responseOf(), status: 'in_progress' } },
  ...output.flatMap((item, output_index): JsonObject[] => [
    { type: 'response.output_item.added', output_index, item: { ...item, ...item['type'] === 'message' ? { content: [] } : item['type'] === 'reasoning' ? { summary: [] } : { arguments: '' } } },
    ...item['type'] === 'message' ? [
      { type: 'response.content_part.added', output_index, content_index: 0, item_id: item['id'], part: { type: 'output_text', text: '' } },
      { type: 'response.output_text.delta', output_index, content_index: 0, item_id: item['id'], delta: (item['content'] as JsonObject[])[0]?.['text'] },
    ] : item['type'] === 'reasoning' ? [
      { type: 'response.reasoning_summary_text.delta', output_index, summary_index: 0, item_id: item['id'], delta: 'Hm.' },
    ] : [{ type: 'response.function_call_arguments.delta', output_index, item_id: item['id'], delta: item['arguments'] }],
    { type: 'response.output_item.done', output_index, item },
  ]),
  { type: 'response.completed', response: responseOf(...output) },
).toString()
const LAST_ITEM = { ...TEXT_ITEM, content: [{ type: 'output_text', text: 'A bird.', annotations: [] }] }
const responsesUpstream: Upstream = {
  turns: [[responseStream(REASONING, TEXT_ITEM, CALL_ITEM), responseOf(REASONING, TEXT_ITEM, CALL_ITEM)], [responseStream(LAST_ITEM), responseOf(LAST_ITEM)]],
  second: { input: [
    { role: 'user' }, { type: 'reasoning', encrypted_content: 'ENC' }, { role: 'assistant' },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":1}' }, { type: 'function_call_output', call_id: 'call_1', output: RESULT },
  ] },
}

const geminiBody = (parts: readonly JsonObject[], isLast: boolean): JsonObject => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...isLast && { finishReason: 'STOP' } }], modelVersion: 'gemini-3-pro', responseId: 'r',
  usageMetadata: { promptTokenCount: 7, ...isLast && { candidatesTokenCount: 2, thoughtsTokenCount: 1, totalTokenCount: 10 } },
})
const geminiTurn = (...parts: JsonObject[]): [string, JsonObject] => (
  [parts.map((part, n) => `data: ${JSON.stringify(geminiBody([part], n === parts.length - 1))}\n\n`).join(''), geminiBody(parts, true)]
)
const generateUpstream: Upstream = {
  turns: [geminiTurn({ text: 'Hm.', thought: true }, { text: 'I look.' }, { functionCall: { name: 'look', args: { at: 1 } }, thoughtSignature: 'U0lH' }), geminiTurn({ text: 'A bird.' })],
  second: { contents: [{}, { role: 'model', parts: [{ text: 'I look.' }, { functionCall: { name: 'look', args: { at: 1 } }, thoughtSignature: 'U0lH' }] }, { parts: [{ functionResponse: { name: 'look', response: { output: RESULT } } }] }] },
}

const CLIENTS: Readonly<Record<string, Client>> = { chat: chatClient, messages: messagesClient, responses: responsesClient, generate: generateClient }
const UPSTREAMS: Readonly<Record<string, Upstream>> = { chat: chatUpstream, messages: messagesUpstream, responses: responsesUpstream, generate: generateUpstream }

for (const [from, client] of Object.entries(CLIENTS)) {
  for (const [to, { turns, second }] of Object.entries(UPSTREAMS)) {
    if (from === to) continue
    t.test(`${from} -> ${to}: thinking, text, a tool call and its result are translated, in a stream and a body`, async t => {
      for (const stream of [true, false]) {
        const { gateway, seen } = await startTranslating(t, { up: { speaks: to, responses: turns.map(([events, body]) => ({ body: stream ? events : body })) } })
        const [first, last] = await client(gateway, stream)
        const name = stream ? 'stream' : 'whole'
        t.strictSame(first, { text: 'I look.', calls: [{ name: 'look', args: { at: 1 } }], tokens: [7, 3] }, `${name}: what the client read`)
        t.strictSame(last, { text: 'A bird.', calls: [], tokens: [7, 3] }, `${name}: the second turn`)
        const [, request] = seen['up'] as [Seen, Seen]
        t.match(request.body, second, `${name}: what the upstream was sent in the second turn`)
        t.notMatch(JSON.stringify(request.body), /Gateway1/, 'no capsule goes upstream')
        t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { input_tokens: 7, output_tokens: 3, end: 'complete' })
      }
    })
  }
}
