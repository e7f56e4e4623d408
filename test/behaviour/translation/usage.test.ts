import fc from 'fast-check'
import t from 'tap'
import { asNumber, asObject } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { bodyBetween, dataOf, sse, streamBetween } from '../../support/translation.ts'
import { MESSAGE_START, chatStream, messageEnd, messagesEvents, textBlock } from '../../support/translating-gateway.ts'

/*
 * The usage that a client reads, for valid and invalid usage of the upstream.
 */

/** Token counts: cached and written tokens are a part of the input, reasoning tokens of the output. */
interface Tokens {
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly reasoning: number
}

interface UsageForm {
  /** The usage of a whole response. */
  write(tokens: Tokens): JsonObject
  /** A response body and a stream with this usage. */
  body(usage: JsonObject): JsonObject
  stream(usage: JsonObject): string
  /** @returns the usage in a body or in a stream event; null = none */
  find(value: JsonObject): JsonObject | null
  read(usage: JsonObject): Tokens
}

const number = (value: unknown): number => asNumber(value) ?? 0

const FORMS: Readonly<Record<string, UsageForm>> = {
  chat: {
    write: ({ input, cached, output, reasoning }) => ({
      prompt_tokens: input, prompt_tokens_details: { cached_tokens: cached }, completion_tokens: output,
      completion_tokens_details: { reasoning_tokens: reasoning }, total_tokens: input + output,
    }),
    body: usage => ({ choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }], usage }),
    stream: usage => chatStream({ delta: { role: 'assistant', content: 'Hi' } }, { delta: {}, finish_reason: 'stop' }, { usage }),
    find: value => asObject(value['usage']),
    read: usage => ({
      input: number(usage['prompt_tokens']), cached: number(asObject(usage['prompt_tokens_details'])?.['cached_tokens']),
      output: number(usage['completion_tokens']), reasoning: number(asObject(usage['completion_tokens_details'])?.['reasoning_tokens']),
    }),
  },
  responses: {
    write: ({ input, cached, output, reasoning }) => ({
      input_tokens: input, input_tokens_details: { cached_tokens: cached }, output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning }, total_tokens: input + output,
    }),
    body: usage => ({ id: 'r', status: 'completed', output: [], usage }),
    stream: usage => sse(
      { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
      { type: 'response.completed', response: { id: 'r', status: 'completed', output: [], usage } },
    ).toString(),
    find: value => asObject(value['usage']) ?? asObject(asObject(value['response'])?.['usage']),
    read: usage => ({
      input: number(usage['input_tokens']), cached: number(asObject(usage['input_tokens_details'])?.['cached_tokens']),
      output: number(usage['output_tokens']), reasoning: number(asObject(usage['output_tokens_details'])?.['reasoning_tokens']),
    }),
  },
  messages: {
    write: ({ input, cached, output, reasoning }) => ({
      input_tokens: input - cached, cache_read_input_tokens: cached, cache_creation_input_tokens: 0, output_tokens: output,
      output_tokens_details: { thinking_tokens: reasoning },
    }),
    body: usage => ({ ...MESSAGE_START.message, content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn', usage }),
    stream: usage => messagesEvents(
      { ...MESSAGE_START, message: { ...MESSAGE_START.message, usage: { ...usage, output_tokens: 1 } } }, ...textBlock(0, 'Hi'),
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage }, ...messageEnd().slice(1),
    ),
    find: value => asObject(value['usage']),
    read: usage => ({
      input: number(usage['input_tokens']) + number(usage['cache_read_input_tokens']) + number(usage['cache_creation_input_tokens']),
      cached: number(usage['cache_read_input_tokens']), output: number(usage['output_tokens']),
      reasoning: number(asObject(usage['output_tokens_details'])?.['thinking_tokens']),
    }),
  },
  generate: {
    write: ({ input, cached, output, reasoning }) => ({
      promptTokenCount: input, cachedContentTokenCount: cached, candidatesTokenCount: output - reasoning, thoughtsTokenCount: reasoning,
      totalTokenCount: input + output,
    }),
    body: usageMetadata => ({ candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }], usageMetadata }),
    stream: usageMetadata => sse({ candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }], usageMetadata }).toString(),
    find: value => asObject(value['usageMetadata']),
    read: usage => ({
      input: number(usage['promptTokenCount']), cached: number(usage['cachedContentTokenCount']),
      output: number(usage['candidatesTokenCount']) + number(usage['thoughtsTokenCount']), reasoning: number(usage['thoughtsTokenCount']),
    }),
  },
}

const count = fc.nat(1_000_000)
const tokens: fc.Arbitrary<Tokens> = fc.record({ cached: count, rest: count, reasoning: count, text: count })
  .map(({ cached, rest, reasoning, text }) => ({ input: cached + rest, cached, output: reasoning + text, reasoning }))

/** Inconsistent or invalid figures. */
const figure = fc.oneof(count, fc.integer({ min: -1_000_000, max: -1 }), fc.constantFrom(null, undefined, 'many', 1.5))
const nonsense = fc.record({ input: figure, cached: figure, output: figure, reasoning: figure }) as unknown as fc.Arbitrary<Tokens>

const RUNS = { seed: 29, numRuns: 40 }

/** @returns all numbers in a value */
function numbersIn(value: unknown): number[] {
  if (typeof value === 'number') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(numbersIn) : []
}

/** The last usage of a stream. */
function lastUsage({ find }: UsageForm, stream: string): JsonObject {
  return dataOf(stream).map(find).findLast(usage => usage !== null) ?? {}
}

for (const [from, client] of Object.entries(FORMS)) {
  for (const [to, upstream] of Object.entries(FORMS)) {
    if (from === to) continue
    const request = from === 'chat' ? { stream_options: { include_usage: true } } : {}
    const unary = (usage: JsonObject): JsonObject => client.find(bodyBetween(from, to, upstream.body(usage))) ?? {}
    const streamed = (usage: JsonObject): JsonObject => lastUsage(client, streamBetween(from, to, [Buffer.from(upstream.stream(usage))], request, true))

    t.test(`${from} -> ${to}: each token is counted once, in a body and in a stream`, async t => {
      fc.assert(fc.property(tokens, given => {
        for (const usage of [unary(upstream.write(given)), streamed(upstream.write(given))]) {
          t.strictSame(client.read(usage), given)
          const total = asNumber(usage['total_tokens'] ?? usage['totalTokenCount'])
          if (total !== null) t.equal(total, given.input + given.output)
        }
      }), RUNS)
    })

    t.test(`${from} -> ${to}: no count is negative, whatever the upstream reports`, async t => {
      fc.assert(fc.property(nonsense, given => {
        for (const usage of [unary(upstream.write(given)), streamed(upstream.write(given))]) {
          t.ok(numbersIn(usage).every(value => Number.isInteger(value) && value >= 0), JSON.stringify({ given, usage }))
        }
      }), RUNS)
    })
  }
}

/** Forms of usage that differ from the vendor of the protocol, and their meaning. */
const ODD: readonly { readonly name: string, readonly to: string, readonly usage: JsonObject, readonly means: Tokens }[] = [
  {
    name: 'cache hits in a top-level field, as DeepSeek reports them', to: 'chat',
    usage: { prompt_tokens: 100, prompt_cache_hit_tokens: 60, completion_tokens: 10, total_tokens: 110 }, means: { input: 100, cached: 60, output: 10, reasoning: 0 },
  },
  {
    name: 'reasoning not included in completion_tokens, as xAI reports it', to: 'chat',
    usage: { prompt_tokens: 100, completion_tokens: 10, completion_tokens_details: { reasoning_tokens: 50 }, total_tokens: 160 },
    means: { input: 100, cached: 0, output: 60, reasoning: 50 },
  },
  {
    name: 'tokens of candidates that are included only in the total', to: 'generate',
    usage: { promptTokenCount: 10, thoughtsTokenCount: 5, totalTokenCount: 22 }, means: { input: 10, cached: 0, output: 12, reasoning: 5 },
  },
  {
    name: 'results of tools that the provider ran', to: 'generate',
    usage: { promptTokenCount: 10, toolUsePromptTokenCount: 4, candidatesTokenCount: 3, totalTokenCount: 17 }, means: { input: 14, cached: 0, output: 3, reasoning: 0 },
  },
  {
    name: 'cache writes reported only by lifetime', to: 'messages',
    usage: { input_tokens: 10, cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 30 }, output_tokens: 3 },
    means: { input: 60, cached: 0, output: 3, reasoning: 0 },
  },
  {
    name: 'usage of a compaction', to: 'messages',
    usage: { input_tokens: 10, output_tokens: 3, iterations: [{ type: 'compaction', input_tokens: 100, output_tokens: 20 }, { type: 'message', input_tokens: 10, output_tokens: 3 }] },
    means: { input: 110, cached: 0, output: 23, reasoning: 0 },
  },
]

for (const { name, to, usage, means } of ODD) {
  for (const [from, client] of Object.entries(FORMS).filter(([from]) => from !== to)) {
    t.test(`${from} -> ${to}: tokens are counted: ${name}`, async t => {
      const upstream = FORMS[to] as UsageForm
      const request = from === 'chat' ? { stream_options: { include_usage: true } } : {}
      t.strictSame(client.read(client.find(bodyBetween(from, to, upstream.body(usage))) ?? {}), means, 'whole')
      t.strictSame(client.read(lastUsage(client, streamBetween(from, to, [Buffer.from(upstream.stream(usage))], request, true))), means, 'stream')
    })
  }
}

t.test('usage inside a choice or inside x_groq of a chat stream is read', async t => {
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
  for (const last of [{ choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }] }, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], x_groq: { usage } }]) {
    const stream = sse({ id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' } }] }, { id: 'c', ...last }, '[DONE]')
    const { find, read } = FORMS['messages'] as UsageForm
    t.strictSame(read(lastUsage({ find, read } as UsageForm, streamBetween('messages', 'chat', [stream]))), { input: 100, cached: 0, output: 10, reasoning: 0 })
  }
})

t.test('a client gets usage only if the upstream reports it or the protocol requires it', async t => {
  const body = { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }] }
  const events = [{ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' } }] }, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }, '[DONE]']
  t.equal(bodyBetween('responses', 'chat', body)['usage'], null)
  t.equal(bodyBetween('generate', 'chat', body)['usageMetadata'], undefined)
  t.match(bodyBetween('messages', 'chat', body)['usage'], { input_tokens: 0, output_tokens: 0 })
  t.match(dataOf(streamBetween('responses', 'chat', [sse(...events)])).at(-1), { response: { status: 'completed', usage: null } })
  t.notMatch(streamBetween('generate', 'chat', [sse(...events)]), /usageMetadata/)
  const chunk = { candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }] }
  t.equal(bodyBetween('chat', 'generate', chunk)['usage'], undefined)
  t.notMatch(streamBetween('chat', 'generate', [sse(chunk)], { stream_options: { include_usage: true } }, true), /prompt_tokens/)
})
