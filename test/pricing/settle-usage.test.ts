import t from 'tap'
import { provisionalUsage } from '../../src/pricing/provisional.ts'
import { settleUsage } from '../../src/pricing/settle-usage.ts'
import type { MeteredResponse, SettleInput, SettledUsage } from '../../src/pricing/settle-usage.ts'
import { createTokenCounter } from '../../src/pricing/token-counter.ts'
import type { TokenCounter } from '../../src/pricing/token-counter.ts'
import { tokenCount } from '../../src/pricing/tokenizer.ts'
import type { EndpointName } from '../../src/protocols/endpoint/protocol.ts'
import { endpointNamed } from '../protocols/endpoint-named.ts'
import { readableMeter } from '../support/readable-meter.ts'
import {
  chat,
  completions,
  generate,
  generateArray,
  images,
  messages,
  responses,
  speech,
  transcript,
} from './recordings.ts'
import type { Recording } from './recordings.ts'

const count = tokenCount()
const counter: TokenCounter = createTokenCounter()
t.teardown(() => counter.close())

const REQUEST = Buffer.from(
  '{"model":"m","messages":[{"role":"user","content":"Hello world, how are you?"}]}',
)
const PROMPT_TOKENS = 3 + 4 + count('Hello world, how are you?')

function streamed(endpoint: EndpointName, events: readonly string[]): MeteredResponse {
  const meter = readableMeter(endpointNamed(endpoint))
  for (const event of events) meter.push(Buffer.from(event))
  meter.end()
  return { kind: 'stream', meter }
}

function named(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
}

function body(value: unknown): MeteredResponse {
  return { kind: 'body', body: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)) }
}

function settle(
  endpoint: EndpointName,
  end: SettleInput['end'],
  response: MeteredResponse | null,
  more: Partial<SettleInput> = {},
): SettledUsage | Promise<SettledUsage> {
  return settleUsage({ endpoint: endpointNamed(endpoint), end, response, request: REQUEST, abandoned: 'prompt', ...more }, counter)
}

/** The known figures, with the source. */
function facts({ usage, source, billed }: SettledUsage): Record<string, unknown> {
  const known = Object.entries(usage).filter(([, value]) => value !== null)
  return { ...Object.fromEntries(known), source, billed }
}

const NOTHING = { source: 'none', billed: false }

t.test('a complete stream has the usage that the upstream reported', async t => {
  const whole = [chat, completions, messages, responses, generate, generateArray, images, transcript]
  for (const { name, endpoint, events, usage } of whole) {
    t.strictSame(
      facts(await settle(endpoint, 'complete', streamed(endpoint, events))),
      { ...usage, source: 'reported', billed: true },
      name,
    )
  }
})

/** What the texts of the first events count, independently: [content and tools, reasoning]. */
function independent({ texts }: Recording, events: number): [number, number] {
  const so = texts.slice(0, events)
  const of = (kind: 0 | 1 | 2) => count(so.map(each => each[kind]).join(''))
  return [of(0) + of(2), of(1)]
}

t.test('a chat, completions or responses stream that is cut after any event has reported usage, or else counted usage', async t => {
  for (const recording of [chat, completions, responses]) {
    const { endpoint, events, texts } = recording
    for (let cut = 0; cut < events.length; cut++) {
      const response = streamed(endpoint, events.slice(0, cut))
      if (response.kind === 'stream' && response.meter.reading()) {
        t.strictSame(facts(await settle(endpoint, 'other', response)), {
          ...recording.usage,
          source: 'reported',
          billed: true,
        })
        continue
      }
      const [visible, reasoning] = independent(recording, cut)
      const generated = texts.slice(0, cut).some(each => each.join('') !== '')
      for (const end of ['client_gone', 'other'] as const) {
        const expected = generated
          ? {
              ...(endpoint === 'chat.completions' ? { inputTokens: PROMPT_TOKENS } : {}),
              outputTokens: visible + reasoning,
              ...(reasoning > 0 ? { reasoningTokens: reasoning } : {}),
              source: 'estimated',
              billed: true,
            }
          : NOTHING
        const more = endpoint === 'chat.completions' ? { abandoned: 'none' as const } : { request: null }
        t.strictSame(
          facts(await settle(endpoint, end, response, more)),
          expected,
          `${recording.name} ${end} ${cut}`,
        )
      }
    }
  }
})

t.test('a usage of zeros at the start of a stream is ignored', async t => {
  const start = named('message_start', { message: { usage: { input_tokens: 0, output_tokens: 0 } } })
  const text = named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Good morning' } })
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  const chunk = `data: ${JSON.stringify({ choices: [{ delta: { content: 'Good morning' } }], usage: zeros })}\n\n`
  const cut = [['messages', [start, text]], ['chat.completions', [chunk]]] as const
  for (const [endpoint, events] of cut) {
    const response = streamed(endpoint, events)
    t.strictSame(facts(await settle(endpoint, 'other', response)), {
      inputTokens: PROMPT_TOKENS, outputTokens: count('Good morning'), source: 'estimated', billed: true,
    }, endpoint)
    if (response.kind === 'stream') t.match(provisionalUsage(response.meter, 99), { inputTokens: 99, outputTokens: 3 })
  }
  const gone = streamed('messages', [start])
  t.strictSame(facts(await settle('messages', 'client_gone', gone, { abandoned: 'none' })), NOTHING)
  t.match(await settle('messages', 'client_gone', gone), { usage: { inputTokens: PROMPT_TOKENS } })
  const whole = streamed('chat.completions', [chunk, 'data: [DONE]\n\n'])
  t.match(await settle('chat.completions', 'complete', whole), { usage: { inputTokens: 0, outputTokens: 0 } })
})

t.test('a messages stream that is cut after any event has reported input and counted output', async t => {
  const input = { inputTokens: 2125, cachedInputTokens: 2000, cacheWrite5mTokens: 100, cacheWrite1hTokens: 0 }
  const { events } = messages
  t.strictSame(facts(await settle('messages', 'client_gone', streamed('messages', events.slice(0, 1)))), {
    ...input,
    outputTokens: 0,
    source: 'reported',
    billed: true,
  })
  for (let cut = 4; cut < events.length - 2; cut++) {
    const [visible, reasoning] = independent(messages, cut)
    t.strictSame(
      facts(await settle('messages', 'client_gone', streamed('messages', events.slice(0, cut)))),
      {
        ...input,
        outputTokens: visible + reasoning,
        reasoningTokens: reasoning,
        source: 'mixed',
        billed: true,
      },
      `after ${cut}`,
    )
  }
  t.strictSame(facts(await settle('messages', 'client_gone', streamed('messages', events.slice(0, -1)))), {
    ...messages.usage,
    source: 'reported',
    billed: true,
  })
})

t.test('a generate stream that is cut after any event has the last reported usage', async t => {
  for (const { endpoint, events } of [generate, generateArray]) {
    t.strictSame(facts(await settle(endpoint, 'other', streamed(endpoint, events.slice(0, 1)))), {
      inputTokens: 12,
      outputTokens: count('**Considering**'),
      reasoningTokens: count('**Considering**'),
      source: 'mixed',
      billed: true,
    })
    for (let cut = 2; cut < events.length - 2; cut++) {
      t.match(facts(await settle(endpoint, 'other', streamed(endpoint, events.slice(0, cut)))), {
        inputTokens: 12,
        outputTokens: 20 + Math.min(5 * (cut - 1), 95),
        reasoningTokens: 20,
        source: 'reported',
        billed: true,
      })
    }
  }
})

t.test('text after the last reported usage is counted, and the result is at least the reported usage', async t => {
  const chunk = (text: string, tokens?: number) =>
    `data: ${JSON.stringify({
      choices: [{ index: 0, delta: { content: text } }],
      ...(tokens === undefined ? {} : { usage: { prompt_tokens: 5, completion_tokens: tokens } }),
    })}\n\n`
  const more = 'and many more words than were counted before'
  t.strictSame(
    facts(
      await settle('chat.completions', 'other', streamed('chat.completions', [chunk('one', 1), chunk(more)])),
    ),
    {
      inputTokens: 5,
      outputTokens: count(`one${more}`),
      source: 'mixed',
      billed: true,
    },
  )
  const reported = facts(
    await settle('chat.completions', 'other', streamed('chat.completions', [chunk('one', 500), chunk(more)])),
  )
  t.match(reported, { inputTokens: 5, outputTokens: 500, billed: true })

  const open = streamed('chat.completions', [chunk('one', 1), chunk(more)])
  if (open.kind === 'stream') t.match(provisionalUsage(open.meter, 99), { inputTokens: 5, outputTokens: 12 })
  const whole = streamed('chat.completions', [chunk('one', 1), chunk(more), 'data: [DONE]\n\n'])
  t.match(facts(await settle('chat.completions', 'complete', whole)), { outputTokens: 1, source: 'reported' })
})

t.test('reported reasoning is added to the counted text', async t => {
  const chunk = (text: string, more = {}) => `data: ${JSON.stringify({
    candidates: [{ content: { parts: [{ text }] } }], ...more,
  })}\n\n`
  const usageMetadata = { promptTokenCount: 5, thoughtsTokenCount: 50, candidatesTokenCount: 1, totalTokenCount: 56 }
  const response = streamed('generate.stream', [chunk('Good', { usageMetadata }), chunk(' morning to all of you')])
  t.strictSame(facts(await settle('generate.stream', 'other', response)), {
    inputTokens: 5, outputTokens: 50 + count('Good morning to all of you'), reasoningTokens: 50,
    source: 'mixed', billed: true,
  })
})

t.test('a response that the upstream did not deliver is not billed', async t => {
  const error =
    'data: {"error":{"message":"The server had an error while processing your request. Sorry!"}}\n\n'
  const nothing: [EndpointName, SettleInput['end'], MeteredResponse | null][] = [
    ['chat.completions', 'other', null],
    ['chat.completions', 'client_gone', null],
    ['chat.completions', 'other', streamed('chat.completions', [])],
    ['chat.completions', 'other', streamed('chat.completions', [chat.events[0]!])],
    ['chat.completions', 'other', streamed('chat.completions', [chat.events[0]!, error])],
    ['chat.completions', 'complete', streamed('chat.completions', [error, 'data: [DONE]\n\n'])],
    ['messages', 'other', streamed('messages', messages.events.slice(0, 1))],
    [
      'messages',
      'other',
      streamed('messages', [
        messages.events[0]!,
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
      ]),
    ],
    ['chat.completions', 'other', body('')],
    ['chat.completions', 'other', { kind: 'none', delivered: false }],
  ]
  for (const [endpoint, end, response] of nothing)
    t.strictSame(facts(await settle(endpoint, end, response)), NOTHING)
})

t.test('a stream that fails before any text has the usage of its failure event', async t => {
  const failed = (usage: unknown) => streamed('responses', [named('response.failed', {
    response: { status: 'failed', error: { code: 'server_error' }, usage },
  })])
  const reasoned = failed({ input_tokens: 30, output_tokens: 20, output_tokens_details: { reasoning_tokens: 20 } })
  t.match(facts(await settle('responses', 'complete', reasoned)), {
    inputTokens: 30, outputTokens: 20, reasoningTokens: 20, source: 'reported', billed: true,
  })
  for (const none of [null, { input_tokens: 30, output_tokens: 0 }]) {
    t.strictSame(facts(await settle('responses', 'complete', failed(none))), NOTHING, 'nothing was generated')
  }
})

t.test('a stream that fails midway is billed for its text, not for its error', async t => {
  const events = [
    ...chat.events.slice(0, 5),
    'data: {"error":{"message":"a long story of what went wrong"}}\n\n',
  ]
  const [visible, reasoning] = independent(chat, 5)
  for (const end of ['other', 'complete'] as const) {
    t.match(facts(await settle('chat.completions', end, streamed('chat.completions', events))), {
      inputTokens: PROMPT_TOKENS,
      outputTokens: visible + reasoning,
      source: 'estimated',
      billed: true,
    })
  }
})

t.test('if the client disconnects before the response, the prompt or nothing is billed, as configured', async t => {
  const before: MeteredResponse[] = [
    { kind: 'none', delivered: false },
    body(''),
    streamed('chat.completions', []),
    streamed('chat.completions', chat.events.slice(0, 2)),
  ]
  for (const response of before) {
    t.strictSame(facts(await settle('chat.completions', 'client_gone', response)), {
      inputTokens: PROMPT_TOKENS,
      outputTokens: 0,
      source: 'estimated',
      billed: true,
    })
    t.strictSame(
      facts(await settle('chat.completions', 'client_gone', response, { abandoned: 'none' })),
      NOTHING,
    )
    t.strictSame(facts(await settle('chat.completions', 'client_gone', response, { request: null })), NOTHING)
  }
})

t.test('a complete body has the usage that it reports', async t => {
  const usage = {
    prompt_tokens: 9,
    completion_tokens: 0,
    total_tokens: 9,
    prompt_tokens_details: { cached_tokens: 0 },
  }
  t.strictSame(facts(await settle('chat.completions', 'complete', body({ choices: [], usage }))), {
    inputTokens: 9,
    cachedInputTokens: 0,
    outputTokens: 0,
    source: 'reported',
    billed: true,
  })
})

t.test('a complete body with missing or invalid usage is counted', async t => {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'I am fine.' }, finish_reason: 'stop' }]
  t.strictSame(facts(await settle('chat.completions', 'complete', body({ choices }))), {
    inputTokens: PROMPT_TOKENS,
    outputTokens: count('I am fine.'),
    source: 'estimated',
    billed: true,
  })
  for (const nonsense of [-3, '12', 1e300, 0.5, null, undefined]) {
    const usage = { prompt_tokens: 9, completion_tokens: nonsense }
    const settled = await settle('chat.completions', 'complete', body({ choices, usage }))
    t.strictSame(
      facts(settled),
      {
        inputTokens: 9,
        outputTokens: count('I am fine.'),
        source: 'mixed',
        billed: true,
      },
      String(nonsense),
    )
    t.equal(settled.suspect, true)
  }
  const stream = streamed('chat.completions', [
    ...chat.events.slice(0, 5),
    'data: {"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":9}}\n\n',
    'data: [DONE]\n\n',
  ])
  t.strictSame(facts(await settle('chat.completions', 'complete', stream)), {
    inputTokens: PROMPT_TOKENS,
    outputTokens: 9,
    source: 'mixed',
    billed: true,
  })
})

t.test('a count is at least the sum of the reported parts', async t => {
  const told = {
    choices: [{ message: { content: 'Hi.' } }],
    usage: {
      prompt_tokens: -1,
      completion_tokens: null,
      prompt_tokens_details: { cached_tokens: 500, cache_write_tokens: 40, audio_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 70 },
    },
  }
  const { usage } = await settle('chat.completions', 'complete', body(told))
  t.match(usage, { inputTokens: 543, cachedInputTokens: 500, cacheWrite5mTokens: 40, inputAudioTokens: 3 })
  t.match(usage, { outputTokens: 70, reasoningTokens: 70 })
  const written = { cache_read_input_tokens: 7, cache_creation_input_tokens: 20_000, output_tokens: 5 }
  const message = await settle('messages', 'complete', body({ content: [], usage: written }))
  t.match(message.usage, { inputTokens: 20_007, cachedInputTokens: 7, cacheWrite5mTokens: 20_000 })
})

t.test('a background response has unknown final usage', async t => {
  for (const status of ['queued', 'in_progress']) {
    const receipt = body({ id: 'r', status, background: true, error: null, output: [], usage: null })
    const request = Buffer.from('{"input":"Hello"}')
    const settled = await settle('responses', 'complete', receipt, { request })
    t.strictSame(facts(settled), { inputTokens: 3 + count('Hello'), source: 'estimated', billed: true })
    t.equal(settled.unread, true)
  }
})

t.test('an incomplete body has its reported usage, or else an estimate from the received bytes', async t => {
  const cut = '{"choices":[{"index":0,"message":{"role":"assistant","content":"I am fi'
  const settled = await settle('chat.completions', 'client_gone', body(cut))
  t.match(facts(settled), { inputTokens: PROMPT_TOKENS, source: 'estimated', billed: true })
  t.ok((settled.usage.outputTokens ?? 0) > 0)
  const early = '{"usage":{"prompt_tokens":9,"completion_tokens":12},"choices":[{"mess'
  t.strictSame(facts(await settle('chat.completions', 'client_gone', body(early))), {
    inputTokens: 9,
    outputTokens: 12,
    source: 'reported',
    billed: true,
  })
})

t.test('an incomplete body that is not JSON has unknown output', async t => {
  const page = body(`<html>${'please log in '.repeat(1_000)}`)
  for (const end of ['client_gone', 'other'] as const) {
    const settled = await settle('chat.completions', end, page)
    t.strictSame(facts(settled), { inputTokens: PROMPT_TOKENS, source: 'estimated', billed: true })
    t.equal(settled.unread, true)
  }
})

t.test('an incomplete body of blank lines has no output', async t => {
  t.match(await settle('chat.completions', 'other', body('\n'.repeat(600))), { billed: false })
  const abandoned = facts(await settle('chat.completions', 'client_gone', body('\n'.repeat(600))))
  t.strictSame(abandoned, { inputTokens: PROMPT_TOKENS, outputTokens: 0, source: 'estimated', billed: true })
  const begun = await settle('chat.completions', 'other', body(`${'\n'.repeat(600)}{"choices":[{"message":{"content":"I am`))
  t.match(begun, { billed: true, unread: false })
})

t.test('embeddings have the reported usage, or else the count of their input', async t => {
  const request = Buffer.from('{"input":["one two","three"]}')
  t.strictSame(
    facts(
      await settle('embeddings', 'complete', body({ data: [], usage: { prompt_tokens: 8 } }), { request }),
    ),
    { inputTokens: 8, source: 'reported', billed: true },
  )
  t.strictSame(
    facts(await settle('embeddings', 'complete', body({ data: [{ embedding: [1] }] }), { request })),
    { inputTokens: count('one two') + count('three'), source: 'estimated', billed: true },
  )
  t.match(await settle('embeddings', 'complete', body({ usage: { prompt_tokens: 8 } })), { unread: false })
  const gemini = Buffer.from('{"content":{"parts":[{"text":"one two"}]}}')
  t.strictSame(
    facts(
      await settle('generate.embed', 'complete', body({ embedding: { values: [1] } }), { request: gemini }),
    ),
    { inputTokens: count('one two'), source: 'estimated', billed: true },
  )
})

t.test('images, transcripts and speech are counted from response and request', async t => {
  t.strictSame(
    facts(await settle('images.generations', 'complete', body({ data: [{ url: 'x' }, { url: 'y' }] }))),
    { images: 2, source: 'reported', billed: true },
  )
  t.strictSame(
    facts(
      await settle('audio.transcriptions', 'complete', body({ text: 'x', duration: 8.5 }), { request: null }),
    ),
    { seconds: 8.5, source: 'reported', billed: true },
  )
  t.strictSame(
    facts(await settle('audio.transcriptions', 'complete', body('just text'), { request: null })),
    { source: 'none', billed: true },
    'text tells nothing: its cost is unknown, not 0',
  )
  const request = Buffer.from('{"model":"tts-1","input":"Hello \\u00fc","voice":"alloy"}')
  const sound: MeteredResponse = { kind: 'none', delivered: true }
  for (const end of ['complete', 'client_gone'] as const) {
    t.strictSame(facts(await settle('audio.speech', end, sound, { request })), {
      characters: 7,
      source: 'reported',
      billed: true,
    })
  }
  const left: MeteredResponse = { kind: 'none', delivered: false }
  t.strictSame(facts(await settle('audio.speech', 'client_gone', left, { request })), {
    inputTokens: count('Hello ü'), outputTokens: 0, characters: 7, source: 'estimated', billed: true,
  }, 'the prompt of a client that disconnected is its characters, too')
  t.strictSame(
    facts(await settle('audio.speech', 'complete', streamed('audio.speech', speech.events), { request })),
    {
      ...speech.usage,
      characters: 7,
      source: 'reported',
      billed: true,
    },
  )
})

t.test('an incomplete transcript is counted by its text so far', async t => {
  const settled = await settle(
    'audio.transcriptions',
    'other',
    streamed('audio.transcriptions', transcript.events.slice(0, 3)),
    { request: null },
  )
  const [visible] = independent(transcript, 3)
  t.strictSame(facts(settled), { outputTokens: visible, source: 'estimated', billed: true })
})

t.test('an incomplete image is billed for its prompt', async t => {
  const request = Buffer.from('{"prompt":"a red apple"}')
  const response = streamed('images.generations', images.events.slice(0, 1))
  t.strictSame(facts(await settle('images.generations', 'client_gone', response, { request })), {
    inputTokens: count('a red apple'),
    source: 'estimated',
    billed: true,
  })
})

t.test('counting tokens and listing models is free; unknown paths have unknown usage', async t => {
  for (const endpoint of [
    'messages.count_tokens',
    'generate.count_tokens',
    'responses.input_tokens',
    'models.list',
    'status',
  ] as const) {
    t.strictSame(facts(await settle(endpoint, 'complete', body({ input_tokens: 5 }))), NOTHING)
  }
  t.strictSame(facts(await settle('other', 'complete', body({ usage: { prompt_tokens: 5 } }))), {
    source: 'none',
    billed: true,
  })
})

t.test('an unreadable stream has unknown output, not 0', async t => {
  const meter = readableMeter(endpointNamed('chat.completions'), { contentType: 'application/x-unknown' })
  meter.push(Buffer.from('something'))
  t.strictSame(facts(await settle('chat.completions', 'complete', { kind: 'stream', meter })), {
    inputTokens: PROMPT_TOKENS,
    source: 'estimated',
    billed: true,
  })
})

t.test('a running stream has the usage so far, estimated from its bytes', async t => {
  const response = streamed('messages', messages.events.slice(0, 6))
  if (response.kind !== 'stream') return
  t.match(provisionalUsage(response.meter, 99), {
    inputTokens: 2125,
    cachedInputTokens: 2000,
    outputTokens: Math.ceil('I should say message_stop.'.length / 4),
  })
  t.match(provisionalUsage(null, 99), { inputTokens: 99, outputTokens: 0 })
  t.match(provisionalUsage(readableMeter(endpointNamed('chat.completions')), null), {
    inputTokens: null,
    outputTokens: 0,
  })
  const whole = streamed('messages', messages.events)
  if (whole.kind === 'stream') t.match(provisionalUsage(whole.meter, 99), messages.usage)
})

t.test('a response that is only an error is not billed, whatever its status', async t => {
  const counter = createTokenCounter()
  t.teardown(() => counter.close())
  const ask = (body: string) => settleUsage({
    endpoint: endpointNamed('chat.completions'),
    end: 'complete',
    response: { kind: 'body', body: Buffer.from(body) },
    request: Buffer.from('{"model":"m","messages":[{"role":"user","content":"hello"}]}'),
    abandoned: 'prompt',
  }, counter)
  t.match(await ask('{"error":{"message":"overloaded"}}'), { billed: false, source: 'none' })
  t.match(await ask('{"error":null,"choices":[]}'), { billed: true })
  const broken = '{"choices":[{"error":{"code":502}}],"usage":{"prompt_tokens":5,"completion_tokens":7}}'
  t.match(await ask(broken), { billed: true, source: 'reported', usage: { outputTokens: 7 } }, 'the reported usage is billed')
})
