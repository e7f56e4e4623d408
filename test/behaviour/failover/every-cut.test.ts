import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { costOf, openBooks, priced, usedIn } from '../billing/books.ts'

/** The result and the usage that the client of a vendor reads from a stream. */
interface Got {
  readonly text: string
  readonly end: string | null | undefined
  readonly input: number
  readonly output: number
}

interface Vendor {
  /** The events of a response, as the vendor sends them. @param text pieces of the text */
  events(text: readonly string[], input: number, output: number): string[]
  /** @returns the prefill of the request; undefined = none */
  prefill(body: Record<string, unknown>): string | undefined
  ask(url: string, model: string): Promise<Got>
}

const named = (event: { readonly type: string, readonly [more: string]: unknown }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

/** @returns the last item of a list */
const lastOf = (list: unknown): Record<string, unknown> => (list as Record<string, unknown>[]).at(-1) ?? {}

const VENDORS: Record<string, Vendor> = {
  openai: {
    events(text, input, output) {
      const chunk = (choices: object[], more = {}) => `data: ${JSON.stringify({
        id: `chatcmpl-${input}`, object: 'chat.completion.chunk', created: input, model: 'gpt',
        service_tier: 'default', choices, usage: null, obfuscation: 'x'.repeat(output), ...more,
      })}\n\n`
      const delta = (delta: object, finish_reason: string | null = null) =>
        chunk([{ index: 0, delta, logprobs: null, finish_reason }])
      const usage = {
        prompt_tokens: input, completion_tokens: output, total_tokens: input + output,
        prompt_tokens_details: { cached_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 },
      }
      return [
        delta({ role: 'assistant', content: '', refusal: null }), ...text.map(content => delta({ content })),
        delta({}, 'stop'), chunk([], { usage }), 'data: [DONE]\n\n',
      ]
    },
    prefill({ messages }) {
      const { role, content } = lastOf(messages)
      return role === 'assistant' ? String(content) : undefined
    },
    async ask(url, model) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })
      const { choices: [choice], usage } = await client.chat.completions.stream({
        model, messages: [{ role: 'user', content: 'x' }], stream_options: { include_usage: true },
      }).finalChatCompletion()
      return {
        text: choice?.message.content ?? '', end: choice?.finish_reason,
        input: usage?.prompt_tokens ?? 0, output: usage?.completion_tokens ?? 0,
      }
    },
  },
  anthropic: {
    events(text, input, output) {
      const message = {
        id: `msg_${input}`, type: 'message', role: 'assistant', model: 'claude', content: [],
        stop_reason: null, stop_sequence: null,
        usage: { input_tokens: input, output_tokens: 1, cache_read_input_tokens: 0 },
      }
      return [
        named({ type: 'message_start', message }),
        named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
        named({ type: 'ping' }),
        ...text.map(each => named({
          type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: each },
        })),
        named({ type: 'content_block_stop', index: 0 }),
        named({
          type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: output },
        }),
        named({ type: 'message_stop' }),
      ]
    },
    prefill({ messages }) {
      const { role, content } = lastOf(messages)
      return role === 'assistant' ? String(content) : undefined
    },
    async ask(url, model) {
      const client = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 })
      const { content, stop_reason: end, usage } = await client.messages
        .stream({ model, max_tokens: 100, messages: [{ role: 'user', content: 'x' }] })
        .finalMessage()
      const text = content.map(block => block.type === 'text' ? block.text : `<${block.type}>`).join('|')
      return { text, end, input: usage.input_tokens, output: usage.output_tokens }
    },
  },
  google: {
    events(text, input, output) {
      const last = text.length - 1
      return text.map((each, n) => {
        const candidate = { content: { role: 'model', parts: [{ text: each }] }, index: 0 }
        const told = n === last ? output : n + 1
        return `data: ${JSON.stringify({
          candidates: [n === last ? { ...candidate, finishReason: 'STOP' } : candidate],
          usageMetadata: {
            promptTokenCount: input, candidatesTokenCount: told, totalTokenCount: input + told,
          },
          modelVersion: 'gemini', responseId: `r${input}`,
        })}\r\n\r\n`
      })
    },
    prefill({ contents }) {
      const { role, parts } = lastOf(contents)
      return role === 'model' ? String(lastOf(parts)['text']) : undefined
    },
    async ask(url, model) {
      const client = new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url } })
      const got = { text: '', end: undefined as string | undefined, input: 0, output: 0 }
      for await (const piece of await client.models.generateContentStream({ model, contents: 'x' })) {
        got.text += piece.text ?? ''
        got.end = piece.candidates?.[0]?.finishReason ?? got.end
        got.input = piece.usageMetadata?.promptTokenCount ?? got.input
        got.output = piece.usageMetadata?.candidatesTokenCount ?? got.output
      }
      return got
    },
  },
}

const TEXT = ['One', ' two,', ' drei', ' \u{1f600}', '\n\n', 'four', '.']
const WHOLE = TEXT.join('')
const INPUT = 30
const OUTPUT = TEXT.length

for (const [name, vendor] of Object.entries(VENDORS)) for (const blank of ['\n\n', '\r\n\r\n']) {
  const lines = blank.length === 2 ? 'LF' : 'CRLF'
  t.test(`wherever a stream is cut, the client gets one complete response and is billed once: ${name}, ${lines}`, async t => {
    const events = vendor.events(TEXT, INPUT, OUTPUT)
      .map(event => event.replace(/\r?\n/g, blank.slice(blank.length / 2)))
    const bytes = Buffer.from(events.join(''))
    const ends = events.map((_, n) => Buffer.byteLength(events.slice(0, n + 1).join('')))
    const named = ends.map((end, n) => end + (events[n + 1] ?? '').indexOf('data:'))
    const cuts = [...new Set(ends.flatMap((end, n) => [
      end - 25, end - blank.length, end - 1, end, named[n] as number,
    ]))].filter(cut => cut > 0)
    let cut = 0
    const broken = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(() => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(bytes.subarray(0, cut), () => setImmediate(() => res.destroy()))
      })
    })
    const spare = await startUpstream(t, (req, res) => {
      void bodyOf(req).then(body => {
        const told = vendor.prefill(JSON.parse(String(body)))
        const rest = told === undefined ? TEXT : Array.from(WHOLE.slice(told.length))
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.end(vendor.events(rest, INPUT + 7, rest.length).join(''))
      })
    })
    // Each cut has its own model, because three failures of one model would open its circuit.
    const models = cuts.map((_, n) => `m${n}`)
    const books = await openBooks(t, `
upstreams: { a: { url: "${broken.url}" }, b: { url: "${spare.url}" } }
routes: [{ to: [a, { upstream: b, prefill: true }], resume: continue }]
${priced(...models)}`)
    const got: (Got | null)[] = []
    for (const [n, model] of models.entries()) {
      cut = cuts[n] as number
      got.push(await vendor.ask(books.gateway.url, model).catch(() => null))
    }
    const rows = [...(await books.drain()).values()]
    for (const [n, row] of rows.entries()) {
      const whole = ends.filter(end => end <= (cuts[n] as number)).length
      const what = `${cuts[n]} bytes, ${whole} events`
      const { input, output } = usedIn(row)
      t.equal(row.costPico, costOf({ input, output }), what)
      // The event with the last text counts even if only its line ends are missing.
      const saidAt = (end: number | undefined) => (cuts[n] as number) >= (end as number) - blank.length
      const isSaid = saidAt(ends.at(name === 'google' ? -1 : -2))
      if (name === 'openai' && whole >= events.length - 2 && !isSaid) {
        t.match([row.end, got[n]], ['upstream_cut', null], `${what}: the requested usage is missing`)
        continue
      }
      t.equal(row.end, 'complete', what)
      t.match(got[n], { text: WHOLE, end: /^(stop|end_turn|STOP)$/, input, output }, what)
      t.equal(row.attempts.length, isSaid ? 1 : 2, `${what}: no attempt is made in vain`)
      if (whole === 0 || row.attempts.length === 1) continue
      const parts = row.attempts.map(({ inputTokens = 0, outputTokens = 0 }) => [inputTokens, outputTokens])
      t.strictSame(parts.reduce(([a = 0, b = 0], [c = 0, d = 0]) => [a + c, b + d]), [input, output], what)
    }
    t.equal(rows.length, cuts.length)
  })
}
