import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { sse } from '../../support/translation.ts'
import {
  MESSAGE_START, anthropicClient, chatChunks, chatStream, cutAfter, genaiClient, messageEnd, messagesEvents, openaiClient, startTranslating, textBlock,
} from '../../support/translating-gateway.ts'

type Events = readonly (JsonObject & { readonly type: string })[]

/** The events of a complete text stream, and of the start of a stream. */
interface Stream {
  begin(text: string): string
  whole(text: string): string
}

const gemini = (text: string, more: JsonObject = {}): string => (
  `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }], usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2 } })}\n\n`
)
const ITEM = { type: 'message', id: 'msg_1', role: 'assistant' }
const RESPONSE = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'in_progress', output: [] }
const responseEvents = (text: string): JsonObject[] => [
  { type: 'response.created', response: RESPONSE },
  { type: 'response.output_item.added', output_index: 0, item: { ...ITEM, status: 'in_progress', content: [] } },
  { type: 'response.content_part.added', output_index: 0, content_index: 0, item_id: 'msg_1', part: { type: 'output_text', text: '' } },
  { type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'msg_1', delta: text },
]

const STREAMS: Readonly<Record<string, Stream>> = {
  chat: {
    begin: text => chatChunks({ delta: { role: 'assistant', content: text } }),
    whole: text => chatStream({ delta: { role: 'assistant', content: text } }, { delta: {}, finish_reason: 'stop' }, { usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 } }),
  },
  messages: {
    begin: text => messagesEvents(MESSAGE_START, ...textBlock(0, text).slice(0, 2)),
    whole: text => messagesEvents(MESSAGE_START, ...textBlock(0, text), ...messageEnd()),
  },
  responses: {
    begin: text => sse(...responseEvents(text)).toString(),
    whole: text => sse(...responseEvents(text),
      { type: 'response.output_item.done', output_index: 0, item: { ...ITEM, status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] } },
      { type: 'response.completed', response: { ...RESPONSE, status: 'completed', output: [{ ...ITEM, status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] }], usage: { input_tokens: 7, output_tokens: 2, total_tokens: 9 } } },
    ).toString(),
  },
  generate: { begin: text => gemini(text), whole: text => gemini(text, { finishReason: 'STOP' }) },
}

const MESSAGES = [{ role: 'user' as const, content: 'Tell me a story.' }]
const CLIENTS: Readonly<Record<string, (gateway: TestGateway) => Promise<string>>> = {
  chat: async gateway => {
    const { choices } = await openaiClient(gateway).chat.completions.stream({ model: 'm', messages: MESSAGES }).finalChatCompletion()
    return choices[0]?.message.content ?? ''
  },
  messages: async gateway => {
    const { content } = await anthropicClient(gateway).messages.stream({ model: 'm', max_tokens: 100, messages: MESSAGES }).finalMessage()
    return content.map(block => block.type === 'text' ? block.text : '').join('')
  },
  responses: async gateway => (await openaiClient(gateway).responses.stream({ model: 'm', input: 'Tell me a story.' }).finalResponse()).output_text,
  generate: async gateway => {
    let text = ''
    for await (const chunk of await genaiClient(gateway).models.generateContentStream({ model: 'm', contents: 'Tell me a story.' })) text += chunk.text ?? ''
    return text
  },
}

const pairs = Object.keys(STREAMS).flatMap(first => Object.keys(STREAMS).filter(second => second !== first).map(second => [first, second] as const))

for (const [first, second] of pairs) {
  const streams = [STREAMS[first], STREAMS[second]] as [Stream, Stream]
  const upstreams = {
    first: { speaks: first, responses: [cutAfter(streams[0].begin('Once '))] },
    second: { speaks: second, responses: [{ body: streams[1].whole('upon a time.') }] },
  }

  t.test(`resume: continue_or_hold: ${second} continues the stream of ${first}, for each client`, async t => {
    for (const [name, client] of Object.entries(CLIENTS)) {
      // The gateway holds streams of the responses protocol, because they cannot be continued.
      const isHeld = name === 'responses'
      const { gateway, seen } = await startTranslating(t, upstreams, ', resume: continue_or_hold')
      t.equal(await client(gateway), isHeld ? 'upon a time.' : 'Once upon a time.', name)
      const { body } = seen['second']?.[0] ?? {}
      const conversation = (body?.['messages'] ?? body?.['contents'] ?? body?.['input']) as JsonObject[]
      if (!isHeld) t.match(JSON.stringify(conversation.at(-1)), 'Once', `${name}: the target gets the text that the client has`)
      t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { status: 200, end: 'complete', attempts: 2, upstream: 'second' })
    }
  })

  // In the pairs each protocol fails once and responds once.
  if (Object.keys(STREAMS).indexOf(second) !== (Object.keys(STREAMS).indexOf(first) + 1) % 4) continue
  t.test(`resume: hold: each client gets only the response of ${second} after the stream of ${first} breaks`, async t => {
    for (const [name, client] of Object.entries(CLIENTS)) {
      const { gateway } = await startTranslating(t, upstreams, ', resume: hold')
      t.equal(await client(gateway), 'upon a time.', name)
    }
  })
}

/** Events that a messages upstream sends before it breaks, and the expected text of a chat client. */
const BROKEN: Readonly<Record<string, Events>> = {
  'in thinking': [
    MESSAGE_START, { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
  ],
  'in a tool call': [
    MESSAGE_START, { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} } },
    { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"at' } },
  ],
}

for (const [where, events] of Object.entries(BROKEN)) {
  t.test(`a stream that breaks ${where} is restarted or ends with an error`, async t => {
    for (const name of ['chat', 'messages', 'generate']) {
      const { gateway } = await startTranslating(t, {
        first: { speaks: 'messages', responses: [cutAfter(messagesEvents(...events))] },
        second: { speaks: 'chat', responses: [{ body: (STREAMS['chat'] as Stream).whole('upon a time.') }] },
      }, ', resume: continue')
      const result = await CLIENTS[name]?.(gateway).catch((error: unknown) => error)
      if (result instanceof Error) t.pass(`${name}: an error`)
      else t.equal(result, 'upon a time.', name)
    }
  })
}
