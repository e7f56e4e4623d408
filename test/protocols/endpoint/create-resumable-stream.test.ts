import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import Anthropic0 from 'anthropic0'
import fc from 'fast-check'
import { GoogleGenAI as GoogleGenAI2 } from 'genai2'
import OpenAI from 'openai'
import OpenAI6 from 'openai6'
import t from 'tap'
import type { Test } from 'tap'
import { createResumableStream } from '../../../src/protocols/endpoint/create-resumable-stream.ts'
import type { EndpointName } from '../../../src/protocols/endpoint/protocol.ts'
import { ResumableStream } from '../../../src/protocols/events/resumable-stream.ts'
import type { PriorUsage, Recovery } from '../../../src/protocols/events/resumable-stream.ts'
import { spliceBytes } from '../../../src/protocols/json/splice.ts'
import type { Edit } from '../../../src/protocols/json/splice.ts'
import { SseReader } from '../../../src/protocols/events/sse.ts'
import { blankUsage } from '../../../src/protocols/usage/usage.ts'
import { endpointNamed } from '../endpoint-named.ts'

const WORDS = ['The ', 'sky ', 'is ', 'blue', '.\n\n', '„Schön“ ', '😀']
const TEXT = WORDS.join('')
const BEFORE = () => ({ ...blankUsage(), inputTokens: 20, outputTokens: 5 })

type Json = Record<string, unknown>

/** The events of a protocol for a text in parts, and the results of its SDKs for these events. */
interface Protocol {
  readonly endpoint: EndpointName
  readonly body: Json
  events(words: readonly string[], id: string): string[]
  /** Number of events before the first word and after the last word. */
  readonly head: number
  readonly tail: number
  readonly sdks: Record<string, (base: string) => Promise<unknown>>
  /** The result that each SDK must return for a response of two upstreams. */
  expected(usage: { input: number; output: number }): unknown
}

const chatBody = { model: 'm', stream: true as const, messages: [{ role: 'user' as const, content: 'Sky?' }] }
const messagesBody = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Sky?' }] }

const CHAT: Protocol = {
  endpoint: 'chat.completions',
  body: { ...chatBody, stream_options: { include_usage: true } },
  events: (words, id) => {
    const chunk = (choices: Json[], more: Json = {}) =>
      `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 5, model: id, choices, ...more })}\n\n`
    const delta = (value: Json, finish: string | null = null) =>
      chunk([{ index: 0, delta: value, logprobs: null, finish_reason: finish }])
    return [
      delta({ role: 'assistant', content: '', refusal: null }),
      ...words.map(content => delta({ content })),
      delta({}, 'stop'),
      chunk([], { usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 } }),
      'data: [DONE]\n\n',
    ]
  },
  head: 1,
  tail: 3,
  sdks: Object.fromEntries([
    ['openai', OpenAI], ['openai6', OpenAI6 as unknown as typeof OpenAI],
  ].map(([name, Sdk]) => [
    name as string,
    async (baseURL: string) => {
      const client = new (Sdk as typeof OpenAI)({ baseURL, apiKey: 'x', maxRetries: 0 })
      const stream = client.chat.completions.stream({ ...chatBody, stream_options: { include_usage: true } })
      const { id, model, created, choices, usage } = await stream.finalChatCompletion()
      const [choice] = choices
      const { role, content } = choice?.message ?? {}
      return {
        id, model, created, count: choices.length, role, content, finish: choice?.finish_reason, usage,
      }
    },
  ])),
  expected: ({ input, output }) => ({
    id: 'first', model: 'first', created: 5, count: 1, role: 'assistant', content: TEXT, finish: 'stop',
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  }),
}

const MESSAGES: Protocol = {
  endpoint: 'messages',
  body: { ...messagesBody, stream: true },
  events: (words, id) => {
    const event = (type: string, more: Json = {}) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
    const message = {
      id, type: 'message', role: 'assistant', model: id, content: [], stop_reason: null, stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 1 },
    }
    return [
      event('message_start', { message }),
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      ...words.map(text => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
      event('content_block_stop', { index: 0 }),
      event('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 },
      }),
      event('message_stop'),
    ]
  },
  head: 2,
  tail: 3,
  sdks: Object.fromEntries([
    ['anthropic', Anthropic], ['anthropic0', Anthropic0 as unknown as typeof Anthropic],
  ]
    .map(([name, Sdk]) => [
      name as string,
      async (baseURL: string) => {
        const client = new (Sdk as typeof Anthropic)({ baseURL, apiKey: 'x', maxRetries: 0 })
        const { id, model, content, stop_reason, usage } = await client.messages.stream(messagesBody)
          .finalMessage()
        const { input_tokens, output_tokens } = usage
        return {
          id, model, content: content.map(({ type, ...rest }) => [type, 'text' in rest ? rest.text : '']),
          stop_reason, input_tokens, output_tokens,
        }
      },
    ])),
  expected: ({ input, output }) => ({
    id: 'first', model: 'first', content: [['text', TEXT]], stop_reason: 'end_turn',
    input_tokens: input, output_tokens: output,
  }),
}

const GENERATE: Protocol = {
  endpoint: 'generate.stream',
  body: {
    contents: [{ role: 'user', parts: [{ text: 'Sky?' }] }], generationConfig: { maxOutputTokens: 100 },
  },
  events: (words, id) => {
    const chunk = (text: string, more: Json, output: number) => `data: ${JSON.stringify({
      candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: output, totalTokenCount: 10 + output },
      modelVersion: id, responseId: id,
    })}\r\n\r\n`
    return [...words.map(text => chunk(text, {}, 1)), chunk('', { finishReason: 'STOP' }, 3)]
  },
  head: 0,
  tail: 1,
  sdks: Object.fromEntries([['genai', GoogleGenAI], ['genai2', GoogleGenAI2 as unknown as typeof GoogleGenAI]]
    .map(([name, Sdk]) => [
      name as string,
      async (baseUrl: string) => {
        const client = new (Sdk as typeof GoogleGenAI)({ apiKey: 'x', httpOptions: { baseUrl } })
        const seen = {
          ids: new Set<unknown>(), versions: new Set<unknown>(), text: '', finish: [] as unknown[], usage: {},
        }
        for await (
          const part of await client.models.generateContentStream({ model: 'm', contents: 'Sky?' })
        ) {
          seen.ids.add(part.responseId)
          seen.versions.add(part.modelVersion)
          seen.text += part.text ?? ''
          const finish = part.candidates?.[0]?.finishReason
          if (finish) seen.finish.push(finish)
          const { promptTokenCount, candidatesTokenCount } = part.usageMetadata ?? {}
          seen.usage = { promptTokenCount, candidatesTokenCount }
        }
        return { ...seen, ids: [...seen.ids], versions: [...seen.versions] }
      },
    ])),
  expected: ({ input, output }) => ({
    ids: ['first'], versions: ['first'], text: TEXT, finish: ['STOP'],
    usage: { promptTokenCount: input, candidatesTokenCount: output },
  }),
}

const PROTOCOLS = [CHAT, MESSAGES, GENERATE]

/** A resumable stream that reads the bytes of events. */
class ByteStream {
  readonly #resumable: ResumableStream

  constructor(endpoint: EndpointName, body: Buffer) {
    const resumable = createResumableStream(endpointNamed(endpoint), body)
    if (!(resumable instanceof ResumableStream)) throw new Error(resumable)
    this.#resumable = resumable
  }

  get recovery(): Recovery {
    return this.#resumable.recovery
  }

  edits(body: Buffer): Edit[] {
    return this.#resumable.edits(body)
  }

  recordSent(events: Buffer): void {
    const reader = new SseReader({
      event: event => {
        if (event.oversize) this.#resumable.recordOversize()
        else this.#resumable.recordSent(event)
      },
    })
    reader.push(events)
    reader.end()
  }

  createTranslator(before: () => PriorUsage) {
    const translate = this.#resumable.createTranslator(before)
    let out = ''
    const reader = new SseReader({
      event: event => {
        out += translate(event)
      },
    })
    const take = (): Buffer => {
      const bytes = Buffer.from(out)
      out = ''
      return bytes
    }
    return {
      push: (bytes: Buffer): Buffer => {
        reader.push(bytes)
        return take()
      },
      end: (): Buffer => {
        reader.end()
        return take()
      },
    }
  }
}

function prepare(endpoint: EndpointName, body: Json): ByteStream {
  return new ByteStream(endpoint, Buffer.from(JSON.stringify(body)))
}

/** @returns the bytes that a client gets of a response that breaks after `cut` events and that another response completes */
function joined(protocol: Protocol, cut: number): string {
  const first = protocol.events(WORDS, 'first').slice(0, cut)
  const said = Math.min(WORDS.length, Math.max(0, cut - protocol.head))
  const prepared = prepare(protocol.endpoint, protocol.body)
  prepared.recordSent(Buffer.from(first.join('')))
  const joiner = prepared.createTranslator(BEFORE)
  const rest = protocol.events(WORDS.slice(said), 'second').join('')
  return first.join('') + joiner.push(Buffer.from(rest)).toString()
}

async function play(t: Test, bytes: string): Promise<string> {
  const server = createServer((req, res) => {
    req.resume().on('end', () => res.writeHead(200, { 'content-type': 'text/event-stream' }).end(bytes))
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const protocol of PROTOCOLS) {
  const { endpoint, tail, head, sdks, expected, body, events } = protocol
  const all = events(WORDS, 'first').length

  t.test(`${endpoint}: SDKs see one response if another upstream continues after any event`, async t => {
    for (let cut = 0; cut <= all - tail; cut++) {
      const base = await play(t, joined(protocol, cut))
      for (const [name, ask] of Object.entries(sdks)) {
        const got = JSON.stringify(await ask(base))
        // If the first response has not started, the client gets the id of the second response.
        const named = JSON.parse(cut === 0 ? got.replaceAll('second', 'first') : got) as Json
        t.match(named, expected({ input: 30, output: 8 }), `${name}, behind event ${cut}`)
      }
    }
  })

  t.test(`${endpoint}: the request for a continuation contains the text so far`, async t => {
    for (let cut = 0; cut <= all - tail; cut++) {
      const prepared = prepare(endpoint, body)
      prepared.recordSent(Buffer.from(events(WORDS, 'first').slice(0, cut).join('')))
      t.strictSame(prepared.recovery, { can: 'continue' })
      const bytes = Buffer.from(JSON.stringify(body))
      const asked = JSON.parse(spliceBytes(bytes, prepared.edits(bytes)).toString()) as Json
      const said = WORDS.slice(0, Math.max(0, cut - head)).join('').trimEnd()
      const list = (asked['messages'] ?? asked['contents']) as Json[]
      t.equal(list.length, said === '' ? 1 : 2)
      if (said !== '') {
        t.strictSame(list[1], endpoint === 'generate.stream'
          ? { role: 'model', parts: [{ text: said }] }
          : { role: 'assistant', content: said })
      }
      const limit = asked['max_tokens']
        ?? (asked['generationConfig'] as Json | undefined)?.['maxOutputTokens']
      if (limit !== undefined) t.equal(limit, 100 - Math.ceil(Buffer.byteLength(said) / 4))
    }
  })

  t.test(`${endpoint}: a stream with CR line ends is continued`, async t => {
    const withCR = (part: readonly string[]) => Buffer.from(part.join('').replaceAll(/\r?\n/g, '\r'))
    const prepared = prepare(endpoint, body)
    prepared.recordSent(withCR(events(WORDS, 'first').slice(0, head + 2)))
    const bytes = Buffer.from(JSON.stringify(body))
    const asked = spliceBytes(bytes, prepared.edits(bytes)).toString()
    t.match(asked, '"The sky"')
    const joiner = prepared.createTranslator(BEFORE)
    const rest = events(WORDS.slice(2), 'second')
    t.match(joiner.push(withCR(rest.slice(0, head + 2))).toString(), '"is ')
    joiner.push(withCR(rest.slice(head + 2)))
    joiner.end()
    t.strictSame(prepared.recovery, { can: 'finish', rest: Buffer.alloc(0) })
  })

  t.test(`${endpoint}: a stream that lacks only its last event is completed without another request`, async t => {
    for (let cut = all - tail + 1; cut <= all; cut++) {
      // The last event but one has the finish reason and the requested usage.
      const first = events(WORDS, 'first').slice(0, endpoint === 'generate.stream' ? cut : Math.max(cut, all - 1))
      const prepared = prepare(endpoint, body)
      prepared.recordSent(Buffer.from(first.join('')))
      const { recovery: standing } = prepared
      if (standing.can !== 'finish') throw new Error(`behind event ${cut}: ${JSON.stringify(standing)}`)
      const base = await play(t, first.join('') + standing.rest.toString())
      for (const ask of Object.values(sdks)) {
        const got = (await ask(base)) as Json
        t.match(JSON.stringify(got), JSON.stringify(TEXT).slice(1, -1))
      }
    }
  })

  t.test(`${endpoint}: property: a stream can break several times, for any chunk boundaries`, async () => {
    await fc.assert(fc.asyncProperty(
      fc.array(fc.nat(3), { maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
      async (breaks, sizes) => {
        const prepared = prepare(endpoint, body)
        let at = 0
        let sent = ''
        for (const [round, words] of [...breaks, WORDS.length].entries()) {
          const all = events(WORDS.slice(at), `answer${round}`)
          const isLast = at + words >= WORDS.length
          const bytes = Buffer.from(all.slice(0, isLast ? all.length : head + words).join(''))
          if (round === 0) prepared.recordSent(bytes)
          const joiner = round === 0 ? { push: (piece: Buffer) => piece } : prepared.createTranslator(BEFORE)
          for (let i = 0, from = 0; from < bytes.length; i++) {
            const to = from + (sizes[i % sizes.length] as number)
            sent += joiner.push(bytes.subarray(from, to)).toString('latin1')
            from = to
          }
          if (isLast) break
          at += words
        }
        const text = textOf(Buffer.from(sent, 'latin1').toString())
        if (text !== TEXT) throw new Error(`${JSON.stringify(breaks)}: ${text}`)
      },
    ), { numRuns: 50 })
  })
}

/** @returns all words in a stream of any protocol */
function textOf(stream: string): string {
  return [
    ...stream.matchAll(/"(?:content|text)":("(?:[^"\\]|\\.)*")/g),
  ].map(([, word]) => JSON.parse(word as string) as string).join('')
}

t.test('white space at the end of the text is not sent upstream, and the client gets the white space once', async t => {
  const prepared = prepare('chat.completions', CHAT.body)
  prepared.recordSent(Buffer.from(CHAT.events(['Hello', ' \n'], 'a').slice(0, 3).join('')))
  const bytes = Buffer.from(JSON.stringify(CHAT.body))
  t.match(spliceBytes(bytes, prepared.edits(bytes)).toString(), '{"role":"assistant","content":"Hello"}')
  const joiner = prepared.createTranslator(BEFORE)
  const out = joiner.push(Buffer.from(CHAT.events([' ', '\n', '\nworld'], 'b').join(''))).toString()
  t.equal(textOf(out), '\nworld')
})

t.test('white space that comes after new text is not dropped as repeated', async t => {
  const prepared = prepare('chat.completions', CHAT.body)
  prepared.recordSent(Buffer.from(CHAT.events(['Hello', ' \n'], 'a').slice(0, 3).join('')))
  const joiner = prepared.createTranslator(BEFORE)
  const out = joiner.push(Buffer.from(CHAT.events([' you', '\n', 'all'], 'b').join(''))).toString()
  t.equal(textOf(out), 'you\nall')
})

t.test('a stream with a tool call or other content than text is not continued', async t => {
  const chunk = (delta: Json, more: Json = {}) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...more }] })}\n\n`
  const block = (type: string) => 'event: content_block_start\n' +
    `data: ${JSON.stringify({ type: 'content_block_start', index: 1, content_block: { type } })}\n\n`
  const part = (value: Json) =>
    `data: ${JSON.stringify({ candidates: [{ content: { parts: [value] } }] })}\n\n`
  for (const [{ endpoint, body }, event, reason] of [
    [CHAT, chunk({ tool_calls: [{ index: 0 }] }), /tool call/],
    [CHAT, chunk({ reasoning_content: 'Hm' }), /reasoning/],
    [CHAT, chunk({ refusal: 'No' }), /refusal/],
    [CHAT, chunk({ audio: { id: 'a' } }), /audio/],
    [CHAT, chunk({ content: 'x' }, { index: 1 }), /several choices/],
    [CHAT, 'data: {half\n\n', /no JSON/],
    [MESSAGES, block('tool_use'), /tool_use/],
    [MESSAGES, block('thinking'), /thinking/],
    [GENERATE, part({ functionCall: { name: 'f' } }), /functionCall/],
    [GENERATE, part({ text: 'Hm', thought: true }), /thought/],
    [GENERATE, 'data: {"candidates":[{"index":0},{"index":1}]}\n\n', /several choices/],
  ] as const) {
    const prepared = prepare(endpoint, body)
    prepared.recordSent(Buffer.from(event))
    t.match(prepared.recovery, { can: 'nothing', reason })
  }
  for (const [endpoint, body, reason] of [
    ['chat.completions', { ...chatBody, n: 2 }, /several/],
    ['chat.completions', { ...chatBody, response_format: { type: 'json_object' } }, /structured/],
    [
      'chat.completions', { ...chatBody, messages: [{ role: 'assistant', content: 'I' }] },
      /assistant itself/,
    ],
    ['chat.completions', { ...chatBody, logprobs: true }, /log prob/],
    ['chat.completions', { ...chatBody, audio: { voice: 'a' } }, /audio/],
    ['chat.completions', { ...chatBody, messages: [] }, /no messages/],
    ['messages', { ...messagesBody, output_format: { type: 'json_schema' } }, /structured/],
    ['messages', { ...messagesBody, output_config: { format: { type: 'json_schema' } } }, /structured/],
    [
      'generate.stream',
      { contents: [], generationConfig: { responseMimeType: 'application/json' } }, /structured/,
    ],
    ['generate.stream', { contents: [], generationConfig: { candidateCount: 2 } }, /several/],
    ['generate.stream', { contents: [], generationConfig: { responseLogprobs: true } }, /log prob/],
    ['generate.stream', { contents: [], generationConfig: { responseJsonSchema: {} } }, /structured/],
    ['generate.stream', { contents: [], generationConfig: { response_schema: {} } }, /structured/],
    [
      'generate.stream',
      { contents: [], generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }, /other than/,
    ],
    ['responses', { input: 'x' }, /endpoint/],
  ] as const) {
    t.match(createResumableStream(endpointNamed(endpoint), Buffer.from(JSON.stringify(body))), reason)
  }
  for (const [endpoint, body] of [
    ['chat.completions', { ...chatBody, n: 1, logprobs: false, audio: null }],
    ['messages', { ...messagesBody, thinking: { type: 'enabled', budget_tokens: 1 }, output_config: {} }],
    [
      'generate.stream',
      { contents: [], generationConfig: { candidateCount: 1, responseModalities: ['text'] } },
    ],
  ] as const) {
    t.ok(createResumableStream(endpointNamed(endpoint), Buffer.from(JSON.stringify(body))) instanceof ResumableStream)
  }
})

t.test('messages: a continuation can begin with a block other than text', async t => {
  const prepared = prepare('messages', MESSAGES.body)
  prepared.recordSent(Buffer.from(MESSAGES.events(['One'], 'first').slice(0, 3).join('')))
  const event = (type: string, more: Json = {}) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const out = prepared.createTranslator(BEFORE).push(Buffer.from([
    event('message_start', { message: { usage: { input_tokens: 1 } } }),
    event('content_block_start', {
      index: 0, content_block: { type: 'tool_use', id: 't', name: 'f', input: {} },
    }),
    event('content_block_stop', { index: 0 }),
  ].join(''))).toString()
  t.strictSame([...out.matchAll(/"type":"(content_block_\w+)","index":(\d)/g)].map(
    ([, type, index]) => [type, index],
  ), [
    ['content_block_stop', '0'], ['content_block_start', '1'], ['content_block_stop', '1'],
  ])
  t.match(prepared.recovery, { can: 'nothing' })
})

const chunkOf = (delta: Json, more: Json = {}, top: Json = {}) =>
  `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason: null, ...more }], ...top })}\n\n`
const eventOf = (type: string, more: Json = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const textBlock = (index: number, text = '') =>
  eventOf('content_block_start', { index, content_block: { type: 'text', text } })
const words = (index: number, text: string) =>
  eventOf('content_block_delta', { index, delta: { type: 'text_delta', text } })

t.test('chat content that is a list of parts cannot be continued', async t => {
  const prepared = prepare('chat.completions', CHAT.body)
  prepared.recordSent(Buffer.from(chunkOf({ content: [{ type: 'text', text: 'Hello' }] })))
  t.match(prepared.recovery, { can: 'nothing', reason: /not plain text/ })
})

t.test('a complete stream with a tool call gets a missing end, and a stream with several choices does not', async t => {
  const tool = prepare('chat.completions', chatBody)
  tool.recordSent(
    Buffer.from(chunkOf({ tool_calls: [{ index: 0 }] }) + chunkOf({}, { finish_reason: 'tool_calls' })),
  )
  t.match(tool.recovery, { can: 'finish', rest: Buffer.from('data: [DONE]\n\n') })
  const several = prepare('chat.completions', chatBody)
  several.recordSent(Buffer.from(chunkOf({}, { finish_reason: 'stop' }) + chunkOf({ content: 'x' }, { index: 1 })))
  t.match(several.recovery, { can: 'nothing' })
  several.recordSent(Buffer.from(chunkOf({}, { finish_reason: 'stop' })))
  t.match(several.recovery, { can: 'nothing' }, 'the first choice has ended again')
})

t.test('the role is sent once, and the usage covers both upstreams', async t => {
  const prepared = prepare('chat.completions', CHAT.body)
  prepared.recordSent(Buffer.from(chunkOf({ role: 'assistant', content: 'One' })))
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const out = prepared.createTranslator(BEFORE).push(Buffer.from(
    chunkOf({ role: 'assistant', content: ' two' }) + chunkOf({}) + chunkOf({ content: '' }, {}, { usage }),
  )).toString()
  t.notMatch(out, 'role')
  t.strictSame(out.match(/^data: /gm)?.length, 2)
  t.match(out, '"usage":{"prompt_tokens":21,')
})

t.test('id and model are those of the first chunk in which they are not empty', async t => {
  const prepared = prepare('chat.completions', CHAT.body)
  prepared.recordSent(Buffer.from(chunkOf({}, {}, { id: '', model: '', created: 0 })))
  prepared.recordSent(Buffer.from(chunkOf({ content: 'One' }, {}, { id: 'real', model: 'm', created: 5 })))
  const out = prepared.createTranslator(BEFORE).push(
    Buffer.from(chunkOf({ content: ' two' }, {}, { id: 'b', model: 'n', created: 6 })),
  )
  t.match(JSON.parse(out.toString().slice(6)), { id: 'real', model: 'm', created: 5 })
})

t.test('finish_reason and [DONE] are sent once, even if the second upstream repeats them', async t => {
  const prepared = prepare('chat.completions', CHAT.body)
  prepared.recordSent(Buffer.from(chunkOf({ content: 'One' })))
  const stop = chunkOf({}, { finish_reason: 'stop' })
  const out =
    prepared.createTranslator(BEFORE).push(Buffer.from(`${stop}${stop}data: [DONE]\n\ndata: [DONE]\n\n`)).toString()
  t.equal(out.match(/"finish_reason":"stop"/g)?.length, 1)
  t.equal(out.match(/\[DONE\]/g)?.length, 1)
})

t.test('generate: generation_config is read like generationConfig', async t => {
  const json = Buffer.from(JSON.stringify({
    contents: [], generation_config: { response_mime_type: 'application/json' },
  }))
  t.match(createResumableStream(endpointNamed('generate.stream'), json), /structured/)
  const body = { contents: [], generation_config: { max_output_tokens: 100 } }
  const prepared = prepare('generate.stream', body)
  prepared.recordSent(Buffer.from(GENERATE.events(['12345678'], 'a').slice(0, 1).join('')))
  const bytes = Buffer.from(JSON.stringify(body))
  t.match(JSON.parse(spliceBytes(bytes, prepared.edits(bytes)).toString()), {
    generation_config: { max_output_tokens: 98 },
  })
})

t.test('messages: a continuation without text closes the open block', async t => {
  const prepared = prepare('messages', MESSAGES.body)
  prepared.recordSent(Buffer.from(eventOf('message_start', { message: {} }) + textBlock(0) + words(0, 'All.')))
  const end = eventOf('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 0 } })
  const out =
    prepared.createTranslator(BEFORE).push(Buffer.from(eventOf('message_start', { message: {} }) + end)).toString()
  t.strictSame(
    [...out.matchAll(/^event: (\w+)/gm)].map(([, type]) => type), ['content_block_stop', 'message_delta'],
  )
})

t.test('messages: after a closed block, an empty block is left out, ' +
  'and a block with text gets the next index', async t => {
  const first = eventOf('message_start', { message: {} }) + textBlock(0) + words(0, 'One.')
    + eventOf('content_block_stop', { index: 0 })
  for (const [text, blocks] of [['', []], ['Two.', ['1', '1', '1']]] as const) {
    const prepared = prepare('messages', MESSAGES.body)
    prepared.recordSent(Buffer.from(first))
    const second = textBlock(0) + (text === '' ? '' : words(0, text)) + eventOf(
      'content_block_stop', { index: 0 },
    )
    const out = prepared.createTranslator(BEFORE).push(Buffer.from(second)).toString()
    t.strictSame([...out.matchAll(/"index":(\d)/g)].map(([, index]) => index), blocks)
  }
})

/** The data of all events. */
const dataIn = (events: Buffer) =>
  [...events.toString().matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string) as Json)

t.test('messages: repeated white space, initial text of a block and thinking are joined', async t => {
  const prepared = prepare('messages', MESSAGES.body)
  prepared.recordSent(Buffer.from(eventOf('message_start', { message: {} }) + textBlock(0) + words(0, 'One \n')))
  const stop = (index: number) => eventOf('content_block_stop', { index })
  const thought = { index: 2, delta: { type: 'thinking_delta', thinking: 'hm' } }
  const out = prepared.createTranslator(BEFORE).push(Buffer.from(
    textBlock(0, ' ') + words(0, '\n') + words(0, 'two') + stop(0) + textBlock(1, ' three') + stop(1)
    + eventOf('content_block_start', { index: 2, content_block: { type: 'thinking', thinking: '' } })
    + eventOf('content_block_delta', thought) + stop(2),
  ))
  t.strictSame(dataIn(out), [
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'two' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: ' three' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'content_block_start', index: 2, content_block: { type: 'thinking', thinking: '' } },
    { type: 'content_block_delta', ...thought },
    { type: 'content_block_stop', index: 2 },
  ])
})

t.test('messages: the initial text of a block continues the open block', async t => {
  const prepared = prepare('messages', MESSAGES.body)
  prepared.recordSent(Buffer.from(eventOf('message_start', { message: {} }) + textBlock(0) + words(0, 'One')))
  const stop = eventOf('content_block_stop', { index: 1 })
  const out = prepared.createTranslator(BEFORE).push(Buffer.from(textBlock(1, ' two') + words(1, ' three') + stop))
  t.strictSame(dataIn(out), [
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ' two' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ' three' } },
    { type: 'content_block_stop', index: 0 },
  ])
})

t.test('messages: the usage is the sum of the inputs of both upstreams, with each kind of input counted once', async t => {
  const prepared = prepare('messages', MESSAGES.body)
  prepared.recordSent(Buffer.from(eventOf('message_start', { message: {} }) + textBlock(0) + words(0, 'One')))
  const before = () => ({
    ...BEFORE(), inputTokens: 100, cachedInputTokens: 40, cacheWrite5mTokens: 8, cacheWrite1hTokens: 2,
  })
  const out = prepared.createTranslator(before).push(Buffer.from(
    eventOf('message_start', { message: { usage: { input_tokens: 7, cache_read_input_tokens: 1 } } })
    + eventOf('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
  ))
  t.strictSame(dataIn(out).at(-1)?.['usage'], {
    input_tokens: 57, output_tokens: 8, cache_read_input_tokens: 41, cache_creation_input_tokens: 10,
  })
})

t.test('generate: both responses get one id and one usage, and thoughts are unchanged', async t => {
  const prepared = prepare('generate.stream', GENERATE.body)
  const chunk = (parts: Json[], more: Json = {}) =>
    Buffer.from(`data: ${JSON.stringify({ candidates: [{ content: { parts } }], ...more })}\n\n`)
  prepared.recordSent(chunk([{ text: 'One \n' }], { responseId: 'first', modelVersion: 'a' }))
  prepared.recordSent(chunk([{ text: ' \n' }]))
  const before = () => ({ ...BEFORE(), cachedInputTokens: 4 })
  const joiner = prepared.createTranslator(before)
  const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 }
  const later = { responseId: 'second', modelVersion: 'b', usageMetadata }
  const out = joiner.push(Buffer.concat([
    chunk([{ text: ' hm', thought: true }]), chunk([{ text: ' \n \ntwo' }, { functionCall: {} }], later),
    Buffer.from(`data: ${JSON.stringify({ usageMetadata })}\n\n`),
  ]))
  const told = {
    promptTokenCount: 30, candidatesTokenCount: 8, totalTokenCount: 38, cachedContentTokenCount: 4,
  }
  const names = { responseId: 'first', modelVersion: 'a' }
  const candidates = (parts: Json[]) => [{ content: { parts } }]
  t.same(dataIn(out), [
    { candidates: candidates([{ text: ' hm', thought: true }]), ...names },
    { candidates: candidates([{ text: 'two' }, { functionCall: {} }]), ...names, usageMetadata: told },
    { usageMetadata: told, ...names },
  ])
  const nameless = prepare('generate.stream', GENERATE.body).createTranslator(BEFORE).push(chunk([{ text: 'x' }]))
  t.notMatch(nameless.toString(), 'responseId')
})

t.test('a last event without its blank line is sent at the end of a continuation', async t => {
  const prepared = prepare('chat.completions', CHAT.body)
  prepared.recordSent(Buffer.from(chunkOf({ content: 'One' })))
  const joiner = prepared.createTranslator(BEFORE)
  t.equal(joiner.push(Buffer.from(chunkOf({ content: ' two' }).trimEnd())).length, 0)
  t.equal(textOf(joiner.end().toString()), ' two')
})

const LIMITS: readonly [EndpointName, (limit: string) => string][] = [
  ['chat.completions', limit => `{"messages":[{"role":"user","content":"?"}],"max_tokens":${limit}}`],
  ['chat.completions', limit => `{"max_completion_tokens":${limit},"messages":[{"role":"user","content":"?"}]}`],
  ['messages', limit => `{"messages":[{"role":"user","content":"?"}],"max_tokens":${limit}}`],
  ['generate.stream', limit => `{"contents":[{}],"generationConfig":{"maxOutputTokens":${limit}}}`],
]

t.test('a limit that is not a number of tokens is not changed in a continuation', async t => {
  const rest = (endpoint: EndpointName, text: string) => {
    const body = Buffer.from(text)
    const prepared = new ByteStream(endpoint, body)
    prepared.recordSent(Buffer.from({
      'chat.completions': chunkOf({ content: 'x'.repeat(40) }),
      'messages': textBlock(0) + words(0, 'x'.repeat(40)),
    }[endpoint as string] ?? `data: {"candidates":[{"content":{"parts":[{"text":"${'x'.repeat(40)}"}]}}]}\n\n`))
    return spliceBytes(body, prepared.edits(body)).toString()
  }
  for (const [endpoint, body] of LIMITS) {
    for (const [limit, left] of [
      ['1e400', '1e400'], ['-1e400', '-1e400'], ['1e300', '1e300'], ['9007199254740993', '9007199254740993'],
      ['-1', '-1'], ['0', '0'], ['-0', '-0'], ['100', '90'], ['1e2', '90'], ['100.0', '90'], ['10', '1'], ['3', '1'],
    ] as const) {
      const asked = rest(endpoint, body(limit))
      t.equal(JSON.stringify(/tokens":([^,}]+)/i.exec(asked)?.[1]), JSON.stringify(left), `${endpoint}: ${limit}`)
      t.doesNotThrow(() => JSON.parse(asked) as unknown)
    }
  }
})
