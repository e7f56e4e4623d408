import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { KEY } from '../../support/gateway.ts'
import { MESSAGE_START, chatStream, cutAfter, messagesEvents, startTranslating, textBlock } from '../../support/translating-gateway.ts'

/*
 * A stream that ends as its protocol wants, and never said why the model stopped, is not whole. The client's protocol
 * has no end for it.
 */

const USAGE = { prompt_tokens: 7, completion_tokens: 3 }
const UPSTREAMS: readonly (readonly [speaks: string, what: string, stream: string])[] = [
  ['chat', 'no finish_reason', chatStream({ delta: { role: 'assistant', content: 'Hi' } }, { usage: USAGE })],
  ['chat', 'the finish_reason of another choice', chatStream({ delta: { role: 'assistant', content: 'Hi' } }, { index: -1, delta: {}, finish_reason: 'stop' }, { usage: USAGE })],
  ['messages', 'no message_delta', messagesEvents(MESSAGE_START, ...textBlock(0, 'Hi'), { type: 'message_stop' })],
]

const hello = { messages: [{ role: 'user', content: 'Hi' }] }
const CLIENTS: readonly (readonly [protocol: string, path: string, body: JsonObject])[] = [
  ['chat', '/v1/chat/completions', { model: 'm', stream: true, ...hello }], ['messages', '/v1/messages', { model: 'm', max_tokens: 9, stream: true, ...hello }],
  ['responses', '/v1/responses', { model: 'm', stream: true, input: 'Hi' }], ['generate', '/v1beta/models/m:streamGenerateContent?alt=sse', { contents: [{ parts: [{ text: 'Hi' }] }] }],
  ['generate', '/v1beta/models/m:streamGenerateContent', { contents: [{ parts: [{ text: 'Hi' }] }] }],
]

/** The last event is complete except for its blank line. */
const WITHOUT_BLANK_LINE = chatStream({ delta: { role: 'assistant', content: 'Hi' } }, { delta: {}, finish_reason: 'stop' }, { usage: USAGE }).trimEnd()
for (const [protocol, path, body] of CLIENTS) {
  if (protocol === 'chat') continue
  for (const isCut of [false, true]) {
    t.test(`${path} <- chat: a stream that ${isCut ? 'is cut' : 'ends'} before its last blank line is complete`, async t => {
      const { gateway } = await startTranslating(t, { up: { speaks: 'chat', responses: [isCut ? cutAfter(WITHOUT_BLANK_LINE) : { body: WITHOUT_BLANK_LINE }] } })
      const response = await fetch(gateway.url + path, { method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/json' }, body: JSON.stringify(body) })
      t.match(await response.text(), /message_stop|response\.completed|"finishReason": ?"STOP"/)
    })
  }
}

for (const [speaks, what, stream] of UPSTREAMS) {
  for (const [protocol, path, body] of CLIENTS) {
    if (protocol === speaks) continue
    t.test(`${path} <- ${speaks}: a stream with ${what} is cut`, async t => {
      const { gateway } = await startTranslating(t, { up: { speaks, responses: [{ body: stream }] } })
      const response = await fetch(gateway.url + path, { method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/json' }, body: JSON.stringify(body) })
      let text = ''
      await t.rejects(async () => {
        for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
      })
      t.match(text, /Hi/)
      const isArray = path.endsWith(':streamGenerateContent')
      t.match(text, isArray ? /\}$/ : /before it was complete/, isArray ? 'no event stands in an array of JSON' : 'an error says why')
      t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { error: 'upstream_cut' })
    })
  }
}
