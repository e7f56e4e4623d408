import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { KEY } from '../../support/gateway.ts'
import { startTranslating } from '../../support/translating-gateway.ts'

/*
 * A chat stream that ends in order behind its finish_reason is whole without `[DONE]`: Perplexity and GPUStack end so. Clients
 * read the absence of `[DONE]` as an interruption, so they get it.
 */

const chunk = (choice: JsonObject | null, more: JsonObject = {}): string => `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: choice === null ? [] : [{ index: 0, ...choice }], ...more })}\n\n`
const TEXT = chunk({ delta: { role: 'assistant', content: 'Hi' }, finish_reason: null })
const FINISH = chunk({ delta: {}, finish_reason: 'stop' })
const USAGE = chunk(null, { usage: { prompt_tokens: 7, completion_tokens: 3 } })

const hello = { messages: [{ role: 'user', content: 'Hi' }] }
const CLIENTS: readonly (readonly [path: string, body: JsonObject, end: RegExp])[] = [
  ['/v1/chat/completions', { model: 'm', stream: true, ...hello }, /"finish_reason":"stop"[^]*data: \[DONE\]\n\n$/],
  ['/v1/messages', { model: 'm', max_tokens: 9, stream: true, ...hello }, /message_stop"\}\n\n$/],
  ['/v1/responses', { model: 'm', stream: true, input: 'Hi' }, /response\.completed/],
  ['/v1beta/models/m:streamGenerateContent?alt=sse', { contents: [{ parts: [{ text: 'Hi' }] }] }, /"finishReason":"STOP"/],
]

async function respond(t: Test, path: string, body: JsonObject, stream: string) {
  const { gateway } = await startTranslating(t, { up: { speaks: 'chat', responses: [{ body: stream }] } })
  const response = await fetch(gateway.url + path, { method: 'POST', headers: { 'x-api-key': KEY, 'content-type': 'application/json' }, body: JSON.stringify(body) })
  return { gateway, response }
}
type Test = Parameters<typeof startTranslating>[0]

for (const [path, body, end] of CLIENTS) {
  for (const [what, stream] of [['the usage', TEXT + FINISH + USAGE], ['no usage', TEXT + FINISH], ['a chunk with all', chunk({ delta: { content: 'Hi' }, finish_reason: 'stop' })]] as const) {
    t.test(`${path}: a stream with ${what} and without [DONE] is complete`, async t => {
      const { gateway, response } = await respond(t, path, body, stream)
      t.match(await response.text(), end)
      t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { error: undefined })
    })
  }
  for (const [what, stream] of [['an empty finish_reason', TEXT + chunk({ delta: {}, finish_reason: '' })], ['no finish_reason', TEXT], ['one choice of two', TEXT + chunk({ index: 1, delta: { content: 'x' } }) + FINISH]] as const) {
    t.test(`${path}: a stream with ${what} and without [DONE] is cut`, async t => {
      const { gateway, response } = await respond(t, path, body, stream)
      await t.rejects(response.text())
      t.match(await gateway.waitForLog(({ msg }) => msg === 'exchange'), { error: 'upstream_cut' })
    })
  }
}
