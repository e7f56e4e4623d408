import t from 'tap'
import { asList, asObject } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { dataOf, requestBetween, streamBetween } from '../../support/translation.ts'
import { chatStream } from '../../support/translating-gateway.ts'
import { SHORT, STREAMS } from '../../support/upstream-streams.ts'

/*
 * Faults of other gateways in streams, each for all pairs of protocols that can have the fault.
 */

const CALLS = { ...SHORT, calls: [['{"at":', '1}'], ['{"at":', '2}']] }
const ARGUMENTS = ['{"at":1}', '{"at":2}']

/** @returns the events that a client gets for a stream of the upstream */
function events(client: string, upstream: string, stream: string, body: JsonObject = {}): JsonObject[] {
  return dataOf(streamBetween(client, upstream, [Buffer.from(stream)], body, true))
}

const upstreamsOf = (client: string): (readonly [string, string])[] => (
  Object.entries(STREAMS).filter(([name]) => name !== client).map(([name, streamOf]) => [name, streamOf(CALLS)] as const)
)

/** @returns the arguments of each call, joined as in the SDK of the client */
const CALLS_OF: Readonly<Record<string, (events: readonly JsonObject[]) => string[]>> = {
  chat: all => {
    const calls: string[] = []
    for (const event of all) {
      const delta = asObject(asObject(asList(event['choices'])[0])?.['delta'])
      for (const value of asList(delta?.['tool_calls'])) {
        const call = asObject(value)
        const index = Number(call?.['index'])
        calls[index] = (calls[index] ?? '') + String(asObject(call?.['function'])?.['arguments'] ?? '')
      }
    }
    return calls
  },
  messages: all => {
    const calls = new Map<unknown, string>()
    for (const { type, index, content_block: block, delta } of all) {
      if (type === 'content_block_start' && asObject(block)?.['type'] === 'tool_use') calls.set(index, '')
      const before = calls.get(index)
      if (type === 'content_block_delta' && before !== undefined) calls.set(index, before + String(asObject(delta)?.['partial_json']))
    }
    return [...calls.values()]
  },
  responses: all => all.filter(({ type }) => type === 'response.function_call_arguments.done').map(event => String(event['arguments'])),
  generate: all => all.flatMap(event => asList(asObject(asObject(asList(event['candidates'])[0])?.['content'])?.['parts']))
    .map(part => asObject(asObject(part)?.['functionCall'])).filter(call => call !== null).map(call => JSON.stringify(call['args'])),
}

for (const [client, callsOf] of Object.entries(CALLS_OF)) {
  t.test(`${client}: parallel tool calls do not share an index or a block`, async t => {
    for (const [upstream, stream] of upstreamsOf(client)) t.strictSame(callsOf(events(client, upstream, stream)), ARGUMENTS, upstream)
    if (client === 'chat') return
    const call = (id: string, text: string): JsonObject => ({ delta: { tool_calls: [{ index: 0, id, type: 'function', function: { name: 'look', arguments: text } }] } })
    const shared = chatStream({ delta: { role: 'assistant' } }, call('call_1', '{"at":1}'), call('call_2', '{"at":2}'), { delta: {}, finish_reason: 'tool_calls' })
    t.strictSame(callsOf(events(client, 'chat', shared)), ARGUMENTS, 'a server that gives both calls one index')
  })
}

t.test('each item of a Responses stream has its own output_index, and is closed once', async t => {
  for (const [upstream, stream] of upstreamsOf('responses')) {
    const all = events('responses', upstream, stream)
    const of = (type: string): unknown[] => all.filter(event => event['type'] === type).map(event => event['output_index'])
    const added = of('response.output_item.added')
    t.strictSame(added, added.map((_, n) => n), `${upstream}: an index for each item`)
    t.strictSame(of('response.output_item.done').toSorted(), added, `${upstream}: each item is closed once`)
    const { response } = all.at(-1) as { readonly response: { readonly output: JsonObject[] } } & JsonObject
    const { output } = response
    t.equal(output.length, added.length, `${upstream}: each item is in the complete response`)
    t.equal(new Set(output.map(({ id }) => id)).size, output.length, `${upstream}: each item has its own id`)
  }
})

t.test('the blocks of a messages stream do not overlap, and each block is closed once', async t => {
  for (const [upstream, stream] of upstreamsOf('messages')) {
    let open: unknown = null
    let next = 0
    for (const { type, index } of events('messages', upstream, stream)) {
      if (type === 'content_block_start') {
        t.strictSame([open, index], [null, next++], `${upstream}: a block starts after the block before has stopped`)
        open = index
      } else if (type === 'content_block_delta') {
        t.equal(index, open, `${upstream}: a delta belongs to the open block`)
      } else if (type === 'content_block_stop') {
        t.equal(index, open, `${upstream}: the open block stops`)
        open = null
      }
    }
    t.equal(open, null)
    t.ok(next >= 4, upstream)
  }
})

t.test('a chat stream has a usage chunk only if the client asks for usage', async t => {
  for (const [upstream, stream] of upstreamsOf('chat')) {
    const usageOf = (body: JsonObject): unknown[] => events('chat', upstream, stream, body).filter(event => asObject(event['usage']) !== null)
    t.strictSame(usageOf({}), [], upstream)
    t.match(usageOf({ stream_options: { include_usage: true } }), [{ choices: [], usage: { prompt_tokens: Number, completion_tokens: Number } }], upstream)
  }
})

t.test('a chat stream has one finish_reason, and only usage after it', async t => {
  for (const [upstream, stream] of upstreamsOf('chat')) {
    const choices = events('chat', upstream, stream, { stream_options: { include_usage: true } }).map(event => asObject(asList(event['choices'])[0]))
    const at = choices.findIndex(choice => (choice?.['finish_reason'] ?? null) !== null)
    t.equal(choices[at]?.['finish_reason'], 'tool_calls', upstream)
    t.strictSame(choices.slice(at + 1).filter(choice => choice !== null), [], upstream)
  }
})

t.test('encrypted reasoning of a responses client does not reach another provider', async t => {
  const input = [
    { role: 'user', content: 'Hi' }, { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'gAAAAAB-encrypted' },
    { role: 'assistant', content: 'Hello' }, { role: 'user', content: 'And?' },
  ]
  for (const to of ['chat', 'messages', 'generate']) {
    const text = JSON.stringify(requestBetween('responses', to, { input }).body)
    t.notMatch(text, 'gAAAAAB-encrypted', to)
    t.match(text, 'Hello', to)
  }
})

t.test('a forced tool choice disables thinking at Anthropic', async t => {
  const SCHEMA = { type: 'object', properties: {} }
  const clients: Readonly<Record<string, JsonObject>> = {
    chat: { messages: [{ role: 'user', content: 'Hi' }], reasoning_effort: 'high', tools: [{ type: 'function', function: { name: 'look', parameters: SCHEMA } }], tool_choice: 'required' },
    responses: { input: 'Hi', reasoning: { effort: 'high' }, tools: [{ type: 'function', name: 'look', parameters: SCHEMA, strict: false }], tool_choice: 'required' },
    generate: {
      contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { thinkingConfig: { thinkingBudget: 9000 } },
      tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: SCHEMA }] }], toolConfig: { functionCallingConfig: { mode: 'ANY' } },
    },
  }
  for (const [from, body] of Object.entries(clients)) {
    const { body: sent, dropped } = requestBetween(from, 'messages', body, 'claude-sonnet-4-5')
    t.match(sent, { tool_choice: { type: 'any' } }, from)
    t.notOk('thinking' in sent, `${from}: Anthropic refuses both together`)
    t.equal(dropped.length, 1, `${from}: ${dropped.join()} is reported as dropped`)
  }
})
