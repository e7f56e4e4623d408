import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { sse } from '../../support/translation.ts'
import { MESSAGE_START, anthropicClient, chatChunks, genaiClient, messagesEvents, openaiClient, startTranslating, textBlock } from '../../support/translating-gateway.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]

/** Reads a stream to its end. @returns the text, and the error that the client threw */
type Client = (gateway: TestGateway) => Promise<{ readonly text: string, readonly thrown: unknown }>

async function read<T>(stream: AsyncIterable<T>, textOf: (event: T) => string): Promise<{ text: string, thrown: unknown }> {
  let text = ''
  try {
    for await (const event of stream) text += textOf(event)
    return { text, thrown: null }
  } catch (thrown) {
    return { text, thrown }
  }
}

const CLIENTS: Readonly<Record<string, Client>> = {
  chat: async gateway => read(await openaiClient(gateway).chat.completions.create({ model: 'm', messages, stream: true }), ({ choices }) => choices[0]?.delta.content ?? ''),
  messages: async gateway => read(await anthropicClient(gateway).messages.create({ model: 'm', max_tokens: 9, messages, stream: true }), event => (
    event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : ''
  )),
  responses: async gateway => read(await openaiClient(gateway).responses.create({ model: 'm', input: 'Hi', stream: true }), event => (
    event.type === 'response.output_text.delta' ? event.delta : ''
  )),
  generate: async gateway => read(await genaiClient(gateway).models.generateContentStream({ model: 'm', contents: 'Hi' }), chunk => chunk.text ?? ''),
}

const ITEM = { type: 'message', id: 'msg_1', role: 'assistant', status: 'in_progress', content: [] }
const RESPONSE = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'in_progress', output: [] }

/** A stream that starts, and then has an overload error. */
const UPSTREAMS: Readonly<Record<string, string>> = {
  chat: `${chatChunks({ delta: { role: 'assistant', content: 'Hel' } })}data: ${JSON.stringify({ error: { message: 'Too busy.', type: 'server_error', code: 503 } })}\n\n`,
  messages: messagesEvents(MESSAGE_START, ...textBlock(0, 'Hel').slice(0, 2), { type: 'error', error: { type: 'overloaded_error', message: 'Too busy.' } }),
  responses: sse(
    { type: 'response.created', response: RESPONSE }, { type: 'response.output_item.added', output_index: 0, item: ITEM },
    { type: 'response.content_part.added', output_index: 0, content_index: 0, item_id: 'msg_1', part: { type: 'output_text', text: '' } },
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'msg_1', delta: 'Hel' },
    { type: 'response.failed', response: { ...RESPONSE, status: 'failed', error: { code: 'server_error', message: 'Too busy.' } } },
  ).toString(),
  generate: [
    { candidates: [{ content: { role: 'model', parts: [{ text: 'Hel' }] }, index: 0 }] }, { error: { code: 503, message: 'Too busy.', status: 'UNAVAILABLE' } },
  ].map((chunk: JsonObject) => `data: ${JSON.stringify(chunk)}\n\n`).join(''),
}

for (const [from, client] of Object.entries(CLIENTS)) {
  for (const [to, body] of Object.entries(UPSTREAMS)) {
    if (from === to) continue
    t.test(`${from} -> ${to}: the client gets the text before an error, then the error in its shape`, async t => {
      const { gateway } = await startTranslating(t, { up: { speaks: to, responses: [{ body }] } })
      const { text, thrown } = await client(gateway)
      t.equal(text, 'Hel')
      t.ok(thrown instanceof Error, 'the client gets an error')
      t.match((thrown as Error).message, /Too busy\./)
      t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { end: 'error' })
    })

    t.test(`${from} -> ${to}: a malformed event breaks the stream, and is not skipped`, async t => {
      const broken = body.slice(0, body.lastIndexOf('data: ')) + 'data: {"tru\n\n: more would follow\n\n'
      const respond = (res: ServerResponse): void => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(broken)
      }
      const { gateway } = await startTranslating(t, { up: { speaks: to, responses: [{ body: respond }] } })
      const { text, thrown } = await client(gateway)
      t.equal(text, 'Hel')
      t.match((thrown as Error).message, /not well-formed/)
      t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { end: 'error', error: 'upstream_invalid' })
    })
  }
}
