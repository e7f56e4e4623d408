import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { start } from '../../simulator/start.ts'
import { KEY, startTestGateway } from '../../support/gateway.ts'
import { WORDS } from './asking.ts'

const FAULTS = ['close_after=6', 'cut_after=8', 'error_event_after=7', 'close_after=9,split=11']

for (const resume of ['continue', 'hold']) {
  for (const fault of FAULTS) {
    t.test(`resume: ${resume}, ${fault}: the SDKs of the vendors get one complete response`, async t => {
      const { url } = await start(t)
      const gateway = await startTestGateway(t, `
upstreams: { a: { url: "${url}" }, b: { url: "${url}" } }
routes:
  - to: [{ upstream: a, model: "sim,${fault}" }, { upstream: b, model: sim, prefill: true }]
    resume: ${resume}
`)

      t.test('openai', async t => {
        const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0 })
        const final = await client.chat.completions
          .stream({
            model: 'm', messages: [{ role: 'user', content: 'x' }], stream_options: { include_usage: true },
          })
          .finalChatCompletion()
        t.equal(final.choices.length, 1)
        t.match(final.choices[0], { message: { role: 'assistant', content: WORDS }, finish_reason: 'stop' })
        t.ok(final.usage, 'the client gets the requested usage')
      })

      t.test('anthropic', async t => {
        const client = new Anthropic({ baseURL: gateway.url, apiKey: KEY, maxRetries: 0 })
        const final = await client.messages
          .stream({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'x' }] })
          .finalMessage()
        t.match(final, {
          role: 'assistant', stop_reason: 'end_turn', content: [{ type: 'text', text: WORDS }],
        })
        t.equal(final.content.length, 1)
        t.ok(final.usage.output_tokens > 1)
      })

      t.test('genai', async t => {
        const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: gateway.url } })
        let text = ''
        let reason: string | undefined
        let tokens = 0
        for await (const piece of await client.models.generateContentStream({ model: 'm', contents: 'x' })) {
          text += piece.text ?? ''
          reason = piece.candidates?.[0]?.finishReason ?? reason
          tokens = piece.usageMetadata?.candidatesTokenCount ?? tokens
        }
        t.equal(text, WORDS)
        t.equal(reason, 'STOP')
        t.ok(tokens > 1)
      })
    })
  }
}
