import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import { KEY } from '../../support/gateway.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'
import { costOf, openBooks, priced, usedIn } from '../billing/books.ts'

type Json = Record<string, unknown>

/** What the client has at the end of the stream. */
interface Got {
  readonly text: string
  readonly calls: readonly { readonly id: string, readonly name: string, readonly input: string }[]
}

interface Vendor {
  /** The events of a response with one call. @param text pieces of the text; empty = the call only */
  events(text: readonly string[], id: string): string[]
  /** Number of the first events that are no part of the call. @param text as above */
  before(text: readonly string[]): number
  /** Number of events with which the call is complete. */
  whole(text: readonly string[]): number
  ask(url: string, model: string): Promise<Got>
}

const ARGUMENTS = ['{"pa', 'th":"', 'a \u{1f600}', '.ts"', '}']
const INPUT = ARGUMENTS.join('')

const named = (event: Json): string => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`

const VENDORS: Record<string, Vendor> = {
  messages: {
    events(text, id) {
      const block = text.length === 0 ? 0 : 1
      const usage = { input_tokens: 30, output_tokens: 1 }
      const message = { id: `msg_${id}`, type: 'message', role: 'assistant', model: 'claude', content: [], stop_reason: null, usage }
      const input = (partial_json: string) => named({ type: 'content_block_delta', index: block, delta: { type: 'input_json_delta', partial_json } })
      return [
        named({ type: 'message_start', message }),
        ...text.length === 0 ? [] : [
          named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
          ...text.map(each => named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: each } })),
          named({ type: 'content_block_stop', index: 0 }),
        ],
        named({ type: 'content_block_start', index: block, content_block: { type: 'tool_use', id, name: 'read', input: {} } }),
        ...ARGUMENTS.slice(0, 2).map(input), named({ type: 'ping' }), ...ARGUMENTS.slice(2).map(input),
        named({ type: 'content_block_stop', index: block }),
        named({ type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 9 } }),
        named({ type: 'message_stop' }),
      ]
    },
    before: text => text.length === 0 ? 1 : text.length + 3,
    whole: text => (text.length === 0 ? 1 : text.length + 3) + ARGUMENTS.length + 3,
    async ask(url, model) {
      const client = new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0 })
      const { content, stop_reason: end } = await client.messages
        .stream({ model, max_tokens: 100, messages: [{ role: 'user', content: 'x' }] }).finalMessage()
      t.equal(end, 'tool_use')
      return {
        text: content.map(block => block.type === 'text' ? block.text : '').join(''),
        calls: content.flatMap(block => block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: JSON.stringify(block.input) }] : []),
      }
    },
  },
  chat: {
    events(text, id) {
      const chunk = (delta: Json, finish_reason: string | null = null, more: Json = {}) => `data: ${JSON.stringify({
        id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1, model: 'gpt', choices: [{ index: 0, delta, finish_reason }], ...more,
      })}\n\n`
      const call = (part: string, more: Json = {}) => chunk({ tool_calls: [{ index: 0, ...more, function: { ...more['id'] ? { name: 'read' } : {}, arguments: part } }] })
      return [
        ...text.length === 0 ? [] : [chunk({ role: 'assistant', content: '' }), ...text.map(content => chunk({ content }))],
        text.length === 0
          ? chunk({ role: 'assistant', content: null, tool_calls: [{ index: 0, id, type: 'function', function: { name: 'read', arguments: '' } }] })
          : call('', { id, type: 'function' }),
        ...ARGUMENTS.map(part => call(part)),
        chunk({}, 'tool_calls', { usage: { prompt_tokens: 30, completion_tokens: 9, total_tokens: 39 } }),
        'data: [DONE]\n\n',
      ]
    },
    before: text => text.length === 0 ? 0 : text.length + 1,
    whole: text => (text.length === 0 ? 0 : text.length + 1) + ARGUMENTS.length + 2,
    async ask(url, model) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0 })
      const { choices: [choice] } = await client.chat.completions
        .stream({ model, messages: [{ role: 'user', content: 'x' }] }).finalChatCompletion()
      const { content, tool_calls: calls = [] } = choice?.message ?? {}
      t.equal(choice?.finish_reason, 'tool_calls')
      return {
        text: content ?? '',
        calls: calls.map(call => call.type === 'function'
          ? { id: call.id, name: call.function.name, input: call.function.arguments }
          : { id: '', name: '', input: '' }),
      }
    },
  },
}

const isPrefilled = ({ messages }: { messages: Json[] }): boolean => messages.at(-1)?.['role'] === 'assistant'

for (const [name, vendor] of Object.entries(VENDORS)) for (const text of [['I', ' read', ' it.'], []]) {
  const what = text.length === 0 ? 'without text, from a target without prefill' : 'after text'
  t.test(`a tool call that is cut at any event is asked for again: ${name}, ${what}`, async t => {
    const first = vendor.events(text, 'call_first')
    const before = vendor.before(text)
    const whole = vendor.whole(text)
    const cuts: number[] = []
    for (let events = before; events < whole; events++) {
      const start = Buffer.byteLength(first.slice(0, events).join(''))
      cuts.push(...events === 0 ? [] : [start], start + 9, start + Buffer.byteLength(first[events] as string) - 3)
    }
    const bytes = Buffer.from(first.join(''))
    const broken = await startUpstream(t, async (req, res) => {
      const { model } = JSON.parse(String(await bodyOf(req)))
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(bytes.subarray(0, cuts[Number(model.slice(1))]), () => setImmediate(() => res.destroy()))
    })
    const spare = await startUpstream(t, async (req, res) => {
      const prefilled = isPrefilled(JSON.parse(String(await bodyOf(req))))
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.end(vendor.events(prefilled ? [] : text, 'call_second').join(''))
    })
    const models = cuts.map((_, n) => `m${n}`)
    const prefill = text.length === 0 ? '' : ', prefill: true'
    const books = await openBooks(t, `
upstreams: { a: { url: "${broken.url}" }, b: { url: "${spare.url}" } }
routes: [{ to: [a, { upstream: b${prefill} }], resume: continue }]
${priced(...models)}`)
    const got: (Got | Error)[] = []
    for (const model of models) got.push(await vendor.ask(books.gateway.url, model).catch((error: unknown) => error as Error))
    for (const [n, row] of [...(await books.drain()).values()].entries()) {
      // The last event of the upstream may complete the call although its blank line is missing.
      const calls = (got[n] as Got).calls
      t.match(got[n], { text: text.join('') }, `${cuts[n]} bytes`)
      t.equal(calls?.length, 1, `${cuts[n]} bytes`)
      t.match(calls?.[0], { id: /^call_(first|second)$/, name: 'read', input: INPUT }, `${cuts[n]} bytes`)
      t.equal(row.end, 'complete')
      t.equal(row.costPico, costOf(usedIn(row)))
      t.equal(row.attempts.length, calls?.[0]?.id === 'call_first' ? 1 : 2)
    }
  })
}
