import { ApiError } from '@google/genai'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import {
  MESSAGE_START, anthropicClient, chatChunks, chatStream, genaiClient, messageEnd, messagesEvents, openaiClient, startTranslating, textBlock,
} from '../../support/translating-gateway.ts'

const CALL = { delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"x":1}' } }] } }
const QUESTION = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] }

/** Chunks of a Gemini stream. */
function chunks(...parts: readonly (readonly JsonObject[])[]): string {
  return parts.map((each, n) => {
    const isLast = n === parts.length - 1
    return `data: ${JSON.stringify({
      candidates: [{ content: { role: 'model', parts: each }, index: 0, ...isLast && { finishReason: 'STOP' } }],
      usageMetadata: { promptTokenCount: 5, ...isLast && { candidatesTokenCount: 3, totalTokenCount: 8 } }, modelVersion: 'gemini-3-pro', responseId: 'r',
    })}\r\n\r\n`
  }).join('')
}

t.test('a Gemini client streams from a chat upstream, and calls a tool in the next turn', async t => {
  const { gateway, seen } = await startTranslating(t, { chat: { speaks: 'chat', responses: [
    { body: chatStream({ delta: { role: 'assistant', content: 'I look.' } }, CALL, { delta: {}, finish_reason: 'tool_calls' }, { usage: { prompt_tokens: 5, completion_tokens: 3 } }) },
    { body: { id: 'c', model: 'm', choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Seen' } }], usage: { prompt_tokens: 6, completion_tokens: 1 } } },
  ] } })
  const client = genaiClient(gateway)
  const tools = [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: { type: 'object' } }] }]
  const parts: object[] = []
  const stream = await client.models.generateContentStream({ model: 'm', contents: 'Look', config: { tools, systemInstruction: 'Be brief.' } })
  for await (const chunk of stream) parts.push(...chunk.candidates?.[0]?.content?.parts ?? [])
  t.match(parts, [{ text: 'I look.' }, { functionCall: { id: 'call_1', name: 'look', args: { x: 1 } } }, {}])
  t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { input_tokens: 5, output_tokens: 3, end: 'complete' })
  const answer = await client.models.generateContent({ model: 'm', config: { tools }, contents: [
    { role: 'user', parts: [{ text: 'Look' }] }, { role: 'model', parts },
    { role: 'user', parts: [{ functionResponse: { id: 'call_1', name: 'look', response: { output: 'ok' } } }] },
  ] })
  t.equal(answer.text, 'Seen')
  t.match(answer.usageMetadata, { promptTokenCount: 6, candidatesTokenCount: 1 })
  t.match(seen['chat']?.[0], { path: '/v1/chat/completions', body: { model: 'chat-model', stream: true, messages: [{ role: 'system' }, { content: 'Look' }] } })
  t.match(seen['chat']?.[1]?.body['messages'], [{}, { tool_calls: [{ id: 'call_1' }] }, { role: 'tool', tool_call_id: 'call_1', content: 'ok' }])
})

t.test('a Gemini client streams from a messages upstream', async t => {
  const { gateway } = await startTranslating(t, { claude: { speaks: 'messages', responses: [{ body: messagesEvents(MESSAGE_START, ...textBlock(0, 'Hel', 'lo'), ...messageEnd()) }] } })
  let text = ''
  for await (const chunk of await genaiClient(gateway).models.generateContentStream({ model: 'm', contents: 'Hi' })) text += chunk.text ?? ''
  t.equal(text, 'Hello')
})

t.test('a Gemini client gets errors in Google\'s shape, also in mid-stream', async t => {
  const { gateway } = await startTranslating(t, { chat: { speaks: 'chat', responses: [
    { status: 400, body: { error: { message: 'no such field', type: 'invalid_request_error', code: null } } },
    { body: `${chatChunks({ delta: { role: 'assistant', content: 'Hel' } })}data: ${JSON.stringify({ error: { message: 'boom', code: 503 } })}\n\n` },
  ] } })
  const client = genaiClient(gateway)
  const failure = await client.models.generateContent({ model: 'm', contents: 'Hi' }).catch((error: unknown) => error)
  t.ok(failure instanceof ApiError)
  t.match(failure, { status: 400, message: /no such field.*INVALID_ARGUMENT/ })
  const stream = await client.models.generateContentStream({ model: 'm', contents: 'Hi' })
  await t.rejects(async () => {
    for await (const chunk of stream) t.ok(chunk)
  }, { message: /boom/ })
})

t.test('messages and chat clients stream from a Gemini upstream, and send its signatures back in the next turn', async t => {
  const first = chunks([{ text: 'Hm.', thought: true }], [{ text: 'I look.' }], [{ functionCall: { name: 'look', args: { x: 1 } }, thoughtSignature: 'U0lH' }])
  const { gateway, seen } = await startTranslating(t, { gemini: { speaks: 'generate', responses: [
    { body: first }, { body: chunks([{ text: 'Seen' }]) }, { body: first }, { body: chunks([{ text: 'Seen' }]) },
  ] } })
  const messages = anthropicClient(gateway).messages
  const tools = [{ name: 'look', input_schema: { type: 'object' as const } }]
  const message = await messages.stream({ ...QUESTION, tools }).finalMessage()
  t.match(message, { stop_reason: 'tool_use', content: [{ type: 'thinking' }, { text: 'I look.' }, { name: 'look', input: { x: 1 } }], usage: { input_tokens: 5, output_tokens: 3 } })
  const toolUse = message.content[2] as { id: string }
  const second = await messages.stream({ ...QUESTION, tools, messages: [...QUESTION.messages, message, { role: 'user', content: [{ type: 'tool_result', tool_use_id: toolUse.id, content: 'ok' }] }] }).finalMessage()
  t.match(second.content, [{ text: 'Seen' }])
  const chat = openaiClient(gateway).chat.completions
  const completion = await chat.stream(QUESTION).finalChatCompletion()
  const reply = completion.choices[0]?.message
  t.match(reply, { content: 'I look.', tool_calls: [{ function: { name: 'look', arguments: '{"x":1}' } }] })
  await chat.stream({ ...QUESTION, messages: [...QUESTION.messages, { role: 'assistant', content: 'I look.', tool_calls: reply?.tool_calls ?? [] }, { role: 'tool', tool_call_id: reply?.tool_calls?.[0]?.id ?? '', content: 'ok' }] }).finalChatCompletion()
  t.equal(seen['gemini']?.[0]?.path, '/v1beta/models/gemini-model:streamGenerateContent?alt=sse')
  for (const n of [1, 3]) {
    const contents = seen['gemini']?.[n]?.body['contents']
    t.match(contents, [{}, { role: 'model', parts: [{ text: 'I look.' }, { functionCall: { name: 'look' }, thoughtSignature: 'U0lH' }] }, { parts: [{ functionResponse: { name: 'look', response: { output: 'ok' } } }] }])
  }
})

t.test('resume: continue: a chat upstream continues the stream of a Gemini upstream', async t => {
  const { gateway } = await startTranslating(t, {
    gemini: { speaks: 'generate', responses: [{ body: res => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(`data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text: 'Once ' }] }, index: 0 }] })}\n\n`, () => res.destroy())
    } }] },
    chat: { speaks: 'chat', responses: [{ body: chatStream({ delta: { role: 'assistant', content: 'more' } }, { delta: {}, finish_reason: 'stop' }) }] },
  }, ', resume: continue')
  const message = await anthropicClient(gateway).messages.stream(QUESTION).finalMessage()
  t.equal(message.content.map(block => (block as { text: string }).text).join(''), 'Once more')
})
