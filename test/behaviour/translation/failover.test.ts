import type Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import {
  MESSAGE_START, anthropicClient, chatChunks, chatStream, cutAfter, messageEnd, messagesEvents, openaiClient, startTranslating, textBlock,
} from '../../support/translating-gateway.ts'
import type { Response } from '../../support/translating-gateway.ts'

const OVERLOADED: Response = { status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'busy' } } }
const DOWN: Response = { status: 503, body: { error: { message: 'down', type: 'server_error' } } }
const CHAT = chatStream(
  { delta: { role: 'assistant', content: 'from chat' } }, { delta: {}, finish_reason: 'stop' },
  { usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } },
)
const MESSAGES = messagesEvents(MESSAGE_START, ...textBlock(0, 'from messages'), ...messageEnd())
const QUESTION = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] }

t.test('a second target that speaks the protocol of the client gets the original request', async t => {
  const { gateway, seen } = await startTranslating(t, {
    claude: { speaks: 'messages', responses: [OVERLOADED] }, chat: { speaks: 'chat', responses: [{ body: CHAT }] },
  })
  const { data, response } = await openaiClient(gateway).chat.completions.create({ ...QUESTION, seed: 1, stream: true }).withResponse()
  let text = ''
  for await (const chunk of data) text += chunk.choices[0]?.delta.content ?? ''
  t.equal(text, 'from chat')
  t.equal(response.headers.get('x-gateway-translated'), null)
  t.equal(response.headers.get('x-gateway-dropped'), null)
  t.match(seen['chat']?.[0]?.body, { model: 'chat-model', seed: 1 })
  t.match(await gateway.waitForLog(line => line['msg'] === 'exchange'), { input_tokens: 5, output_tokens: 3, status: 200 })
})

t.test('a request is translated for the second target if the first target, with the protocol of the client, fails', async t => {
  const { gateway } = await startTranslating(t, {
    claude: { speaks: 'messages', responses: [OVERLOADED] }, chat: { speaks: 'chat', responses: [{ body: CHAT }] },
  })
  const stream = anthropicClient(gateway).messages.stream(QUESTION)
  const { response } = await stream.withResponse()
  const message = await stream.finalMessage()
  t.match(message, { content: [{ type: 'text', text: 'from chat' }], stop_reason: 'end_turn', usage: { input_tokens: 5, output_tokens: 3 } })
  t.equal(response.headers.get('x-gateway-translated'), 'messages->chat')
})

t.test('if all targets fail, the client gets the last error in the shape of its protocol', async t => {
  const { gateway } = await startTranslating(t, {
    chat: { speaks: 'chat', responses: [DOWN] }, claude: { speaks: 'messages', responses: [OVERLOADED] },
  })
  const failure = await openaiClient(gateway).chat.completions.create(QUESTION).catch((error: unknown) => error)
  t.ok(failure instanceof OpenAI.APIError)
  t.match(failure, { status: 529, type: 'server_error', message: /busy/ })
})

for (const [first, second] of [['claude', 'chat'], ['chat', 'claude']] as const) {
  t.test(`resume: continue: ${second} continues the stream of ${first} in another protocol`, async t => {
    const beginning = {
      claude: cutAfter(messagesEvents(MESSAGE_START, textBlock(0)[0] as JsonObject & { type: string }, textBlock(0, 'Once ')[1] as JsonObject & { type: string })),
      chat: cutAfter(chatChunks({ delta: { role: 'assistant', content: 'Once ' } })),
    }
    const speaks = { claude: 'messages', chat: 'chat' }
    const rest = { claude: { body: MESSAGES }, chat: { body: CHAT } }
    const { gateway, seen } = await startTranslating(t, {
      [first]: { speaks: speaks[first], responses: [beginning[first]] }, [second]: { speaks: speaks[second], responses: [rest[second]] },
    }, ', resume: continue')
    const expected = second === 'chat' ? 'Once from chat' : 'Once from messages'
    const message = await anthropicClient(gateway).messages.stream(QUESTION).finalMessage()
    t.equal(message.content.map(block => (block as Anthropic.TextBlock).text).join(''), expected)
    const completion = await openaiClient(gateway).chat.completions.stream(QUESTION).finalChatCompletion()
    t.equal(completion.choices[0]?.message.content, expected)
    for (const { body } of seen[second] ?? []) {
      const messages = body['messages'] as JsonObject[]
      t.equal(messages.at(-1)?.['role'], 'assistant', 'the target gets the text that the client has')
      t.match(JSON.stringify(messages.at(-1)), /Once/)
    }
  })

  t.test(`resume: hold: the client gets only the response of ${second} after the stream of ${first} breaks`, async t => {
    const beginning = { claude: cutAfter(messagesEvents(MESSAGE_START)), chat: cutAfter(chatChunks({ delta: { content: 'Once ' } })) }
    const speaks = { claude: 'messages', chat: 'chat' }
    const { gateway } = await startTranslating(t, {
      [first]: { speaks: speaks[first], responses: [beginning[first]] },
      [second]: { speaks: speaks[second], responses: [{ body: second === 'chat' ? CHAT : MESSAGES }] },
    }, ', resume: hold')
    const message = await anthropicClient(gateway).messages.stream(QUESTION).finalMessage()
    t.match(message.content, [{ text: second === 'chat' ? 'from chat' : 'from messages' }])
    const completion = await openaiClient(gateway).chat.completions.stream(QUESTION).finalChatCompletion()
    t.equal(completion.choices[0]?.message.content, second === 'chat' ? 'from chat' : 'from messages')
  })
}

t.test('on.context_length sends the request to another vendor', async t => {
  const { gateway } = await startTranslating(t, {
    chat: { speaks: 'chat', responses: [{ status: 400, body: { error: { code: 'context_length_exceeded', message: 'too long', type: 'invalid_request_error' } } }] },
    claude: { speaks: 'messages', responses: [{ body: MESSAGES }] },
  }, ', on: { context_length: { upstream: claude, model: claude-model } }')
  const message = await anthropicClient(gateway).messages.stream(QUESTION).finalMessage()
  t.match(message.content, [{ text: 'from messages' }])
})

t.test('a target to which the request cannot be translated is skipped', async t => {
  const { gateway, seen } = await startTranslating(t, {
    claude: { speaks: 'messages', responses: [{ body: MESSAGES }] }, chat: { speaks: 'chat', responses: [{ body: CHAT }] },
  })
  const audio = { type: 'input_audio' as const, input_audio: { data: 'AAAA', format: 'wav' as const } }
  const completion = await openaiClient(gateway).chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: [audio] }] }).finalChatCompletion()
  t.equal(completion.choices[0]?.message.content, 'from chat')
  t.equal(seen['claude']?.length, 0)
})
