import fc from 'fast-check'
import t from 'tap'
import type { StreamMeterOptions } from '../../../src/protocols/endpoint/create-stream-meter.ts'
import type { TextSample } from '../../../src/protocols/events/generated-text.ts'
import type { EndpointName } from '../../../src/protocols/endpoint/protocol.ts'
import type { StreamMeter } from '../../../src/protocols/events/stream-meter.ts'
import {
  RECORDINGS,
  chat,
  generate,
  generateArray,
  images,
  messages,
  responses,
  speech,
  transcript,
} from '../../pricing/recordings.ts'
import type { Recording } from '../../pricing/recordings.ts'
import { readableMeter } from '../../support/readable-meter.ts'
import type { ReadableMeter } from '../../support/readable-meter.ts'
import { endpointNamed } from '../endpoint-named.ts'
import { chunksOf, chunksOfSize } from '../events/chunks.ts'

/** Pushes copies and overwrites them afterwards, because a meter must not use old chunks. */
function meterOf(
  endpoint: EndpointName,
  chunks: readonly (Buffer | string)[],
  options?: StreamMeterOptions,
): ReadableMeter {
  const meter = readableMeter(endpointNamed(endpoint), options)
  for (const chunk of chunks) {
    const copy = Buffer.from(chunk as string)
    meter.push(copy)
    copy.fill(0x22)
  }
  return meter
}

function ended(meter: ReadableMeter): StreamMeter {
  meter.end()
  return meter
}

function figures(meter: StreamMeter): Record<string, number> | null {
  const reading = meter.reading()
  return reading && Object.fromEntries(Object.entries(reading.usage).filter(([, value]) => value !== null))
}

/** All text of one kind, unescaped; JSON without its white space. */
function texts({ runs }: TextSample): [string, string, string] {
  const of = (kind: string) =>
    runs
      .filter(run => run.kind === kind)
      .map(({ escaped, bytes }) => {
        const text = Buffer.from(bytes).toString()
        return escaped ? (JSON.parse(`"${text}"`) as string) : JSON.stringify(JSON.parse(text))
      })
      .join('')
  return [of('content'), of('reasoning'), of('tool')]
}

function textsAfter({ texts }: Recording, events: number): [string, string, string] {
  const so = texts.slice(0, events)
  return [
    so.map(each => each[0]).join(''),
    so.map(each => each[1]).join(''),
    so.map(each => each[2]).join(''),
  ]
}

const whole = (recording: Recording) => Buffer.from(recording.events.join(''))

for (const recording of RECORDINGS) {
  const { name, endpoint, events, usage } = recording

  t.test(`${name}: a complete stream is metered the same for any chunk boundaries`, async t => {
    const bytes = whole(recording)
    const check = (chunks: readonly Buffer[]) => {
      const meter = ended(meterOf(endpoint, chunks))
      t.strictSame({
        terminated: meter.terminated, sawContent: meter.sawContent, sawError: meter.sawError,
        isOutputReported: meter.isOutputReported, figures: figures(meter), suspect: meter.reading()?.suspect,
        texts: texts(meter.partial()),
      }, {
        terminated: true, sawContent: true, sawError: false, isOutputReported: true, figures: usage, suspect: false,
        texts: textsAfter(recording, events.length),
      })
    }
    check([bytes])
    check(events.map(event => Buffer.from(event)))
    for (const size of [1, 2, 3, 7, 64, 1000]) check(chunksOfSize(bytes, size))
    fc.assert(fc.property(chunksOf(bytes), check), { numRuns: 30 })
  })

  t.test(`${name}: a stream that is cut after an event is not terminated, and the text of the stream is counted`, async t => {
    for (let cut = 0; cut < events.length; cut++) {
      const meter = ended(meterOf(endpoint, events.slice(0, cut)))
      t.equal(meter.terminated, false, `after ${cut}`)
      t.strictSame(texts(meter.partial()), textsAfter(recording, cut), `after ${cut}`)
    }
  })

  t.test(`${name}: a stream that is cut at any byte is metered up to its last event`, async t => {
    const bytes = whole(recording)
    const ends = events.map((_, n) => Buffer.byteLength(events.slice(0, n + 1).join('')))
    const step = Math.max(1, Math.floor(bytes.length / 3000))
    const wrong: string[] = []
    for (let cut = 0; cut < bytes.length; cut += step) {
      const meter = ended(meterOf(endpoint, [bytes.subarray(0, cut)]))
      const events = ends.filter(end => end <= cut).length
      // An event without its blank line is complete, and may be counted.
      const now = texts(meter.partial()).join('\n')
      const before = textsAfter(recording, events).join('\n')
      const after = textsAfter(recording, events + 1).join('\n')
      if (now !== before && now !== after) wrong.push(`the texts at byte ${cut}`)
      if (meter.terminated && cut <= bytes.length - 5) wrong.push(`ended at byte ${cut} of ${bytes.length}`)
    }
    t.strictSame(wrong, [])
  })
}

t.test('atBoundary is true only between events', async t => {
  for (const recording of RECORDINGS) {
    if (recording === generateArray) continue
    const bytes = whole(recording)
    const ends = new Set(
      recording.events.map((_, n) => Buffer.byteLength(recording.events.slice(0, n + 1).join(''))),
    )
    const meter = readableMeter(endpointNamed(recording.endpoint))
    t.equal(meter.reader.atBoundary, true)
    let wrong = 0
    for (let at = 0; at < bytes.length; at++) {
      meter.push(bytes.subarray(at, at + 1))
      if (meter.reader.atBoundary !== ends.has(at + 1)) wrong++
    }
    t.equal(wrong, 0, recording.name)
  }
  t.equal(meterOf('generate.stream', ['[{}']).reader.atBoundary, false, 'no event can follow inside an array')
})

t.test('chat: a cut stream has no usage before its usage chunk', async t => {
  const usageAt = chat.events.length - 2
  for (let cut = 0; cut <= usageAt; cut++) {
    t.equal(ended(meterOf('chat.completions', chat.events.slice(0, cut))).reading(), null)
  }
  const meter = ended(meterOf('chat.completions', chat.events.slice(0, usageAt + 1)))
  t.strictSame(figures(meter), chat.usage)
  t.equal(meter.isOutputReported, true)
})

t.test('messages: a cut stream has reported input after message_start, and reported output after message_delta', async t => {
  const input = {
    inputTokens: 2125,
    cachedInputTokens: 2000,
    cacheWrite5mTokens: 100,
    cacheWrite1hTokens: 0,
  }
  for (let cut = 1; cut < messages.events.length - 2; cut++) {
    const meter = ended(meterOf('messages', messages.events.slice(0, cut)))
    t.strictSame(figures(meter), input, `after ${cut}`)
    t.equal(meter.reading()?.suspect, false)
    t.equal(meter.isOutputReported, !meter.sawContent || textsAfter(messages, cut).join('') === '')
  }
  const meter = ended(meterOf('messages', messages.events.slice(0, -1)))
  t.strictSame(figures(meter), messages.usage)
  t.equal(meter.isOutputReported, true)
})

t.test('generate: a cut stream has the usage of its last usageMetadata', async t => {
  for (const { endpoint, events } of [generate, generateArray]) {
    t.strictSame(
      figures(ended(meterOf(endpoint, events.slice(0, 1)))),
      { inputTokens: 12 },
      'not counted yet',
    )
    const meter = ended(meterOf(endpoint, events.slice(0, 4)))
    t.strictSame(figures(meter), { inputTokens: 12, outputTokens: 35, reasoningTokens: 20 })
    t.equal(meter.isOutputReported, true)
  }
  const without = 'data: {"candidates":[{"content":{"parts":[{"text":"more"}]}}]}\r\n\r\n'
  const meter = ended(meterOf('generate.stream', [...generate.events.slice(0, 4), without]))
  t.equal(meter.isOutputReported, false, 'text after the last usage')
  t.strictSame(figures(meter), { inputTokens: 12, outputTokens: 35, reasoningTokens: 20 })
})

t.test('chat: if every chunk has usage, the last usage counts', async t => {
  const chunk = (text: string, tokens: number | null) => {
    const usage = tokens === null ? '' : `,"usage":{"prompt_tokens":5,"completion_tokens":${tokens}}`
    return `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]${usage}}\n\n`
  }
  const meter = meterOf('chat.completions', [chunk('a', 1), chunk('b', 2)])
  t.strictSame(figures(meter), { inputTokens: 5, outputTokens: 2 })
  t.equal(meter.isOutputReported, true)
  meter.push(Buffer.from(chunk('c', null)))
  t.equal(meter.isOutputReported, false)
  t.strictSame(figures(meter), { inputTokens: 5, outputTokens: 2 })
})

t.test('chat: usage: null does not reset an earlier usage', async t => {
  const meter = meterOf('chat.completions', [
    'data: {"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}\n\n',
    'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}\n\n',
  ])
  t.match(figures(meter), { inputTokens: 5, outputTokens: 1 })
  t.equal(meter.isOutputReported, true)
  meter.push(Buffer.from('data: {"choices":[{"delta":{"content":"more"}}],"usage":null}\n\n'))
  t.equal(meter.isOutputReported, false, 'the text of the same chunk is not counted by the earlier usage')
  const message = meterOf('messages', [
    'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}\n\n',
    'data: {"type":"message_delta","delta":{},"usage":{"input_tokens":5,"output_tokens":null}}\n\n',
  ])
  t.equal(message.isOutputReported, false)
})

t.test('chat: usage in the chunk of the finish_reason counts', async t => {
  const last = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
    + '"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
  const meter = meterOf('chat.completions', [chat.events[4]!, last, 'data: [DONE]\n\n'])
  t.strictSame(figures(meter), { inputTokens: 5, outputTokens: 2 })
  t.equal(meter.terminated, true)
})

t.test('chat: the texts of several choices are kept separate', async t => {
  const piece = (index: number, text: string) =>
    `data: {"choices":[{"index":${index},"delta":{"content":"${text}"}}]}\n\n`
  const meter = meterOf('chat.completions', [
    piece(0, 'Hel'),
    piece(1, 'Gu'),
    piece(0, 'lo'),
    piece(1, 'ten'),
  ])
  t.strictSame(
    meter.partial().runs.map(run => Buffer.from(run.bytes).toString()),
    ['Hello', 'Guten'],
  )
})

t.test('chat: parts, audio transcripts, refusals and function_call count as text', async t => {
  const delta = (value: unknown) => `data: ${JSON.stringify({ choices: [{ delta: value, index: 0 }] })}\n\n`
  const meter = meterOf('chat.completions', [
    delta({
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
        { type: 'text', text: 'yes' },
      ],
    }),
    delta({ audio: { id: 'a', data: 'UklGRg==', transcript: ' spoken' } }),
    delta({ reasoning_content: '', reasoning: ' so' }),
    delta({ refusal: ' no' }),
    delta({ function_call: { name: 'f', arguments: '{}' } }),
    delta({ content: 5, tool_calls: 'none', audio: null, function_call: [], reasoning: { a: 1 } }),
  ])
  t.strictSame(texts(meter.partial()), ['yes spoken no', 'hm so', '{}'])
})

t.test('chat: sawContent is true after an image', async t => {
  const seen = (delta: object): boolean => {
    return meterOf('chat.completions', [`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`]).sawContent
  }
  t.equal(seen({ content: '', images: [{ type: 'image_url', image_url: { url: 'data:,' } }] }), true)
  t.equal(seen({ content: '', images: [] }), false)
})

t.test('chat: usage inside x_groq or a choice counts', async t => {
  const usage = { prompt_tokens: 3, completion_tokens: 7, total_tokens: 10 }
  const last = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  const read = (...chunks: object[]) => {
    const events = chunks.map(chunk => `data: ${JSON.stringify(chunk)}\n\n`)
    return figures(ended(meterOf('chat.completions', [...events, 'data: [DONE]\n\n'])))
  }
  const expected = { inputTokens: 3, outputTokens: 7 }
  t.strictSame(read({ x_groq: { id: 'r' }, ...last }), null)
  t.strictSame(read({ ...last, x_groq: { id: 'r', usage } }), expected)
  t.strictSame(read({ choices: [{ ...last.choices[0], usage }] }), expected)
  t.strictSame(read({ ...last, x_groq: { usage: { prompt_tokens: 1 } } }, { choices: [], usage }), expected)
  t.strictSame(read({ ...last, x_groq: 'x' }, { choices: [{ usage: null }] }), null)
})

t.test('sawContent is true from the first token', async t => {
  const first: [Recording, number][] = [
    [chat, 2],
    [messages, 3],
    [responses, 2],
    [generate, 0],
    [images, 0],
    [transcript, 0],
    [speech, 0],
  ]
  for (const [recording, event] of first) {
    t.equal(meterOf(recording.endpoint, recording.events.slice(0, event)).sawContent, false, recording.name)
    t.equal(
      meterOf(recording.endpoint, recording.events.slice(0, event + 1)).sawContent,
      true,
      recording.name,
    )
  }
  const empty = { name: 'look_up', arguments: '' }
  const deltas = [
    { tool_calls: [{ index: 0, function: empty }] }, { function_call: empty }, { audio: { data: 'AAAA' } },
  ]
  for (const delta of deltas) {
    const { sawContent } = meterOf('chat.completions', [`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`])
    t.equal(sawContent, true, Object.keys(delta).join())
  }
  const events = {
    'messages': { type: 'content_block_start', content_block: { type: 'tool_use', name: 'look_up', input: {} } },
    'images.generations': { type: 'image_generation.completed', b64_json: '' },
    'realtime': { type: 'response.output_audio.delta', delta: 'AAAA' },
  } as const
  for (const [endpoint, event] of Object.entries(events)) {
    const meter = meterOf(endpoint as EndpointName, [`data: ${JSON.stringify(event)}\n\n`])
    t.equal(meter.sawContent, true, event.type)
    t.strictSame(meter.generatedBytes, { content: 0, reasoning: 0, tool: 0 }, 'no event has text')
  }
})

t.test('messages: sawContent is true after redacted thinking', async t => {
  const block = { type: 'redacted_thinking', data: 'RW5jcnlwdGVk' }
  const event = { type: 'content_block_start', index: 0, content_block: block }
  const wire = [...messages.events.slice(0, 1), `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`]
  t.equal(meterOf('messages', wire).sawContent, true)
})

t.test('an error event is recognized, and is neither content nor an end', async t => {
  const errors: [EndpointName, string][] = [
    ['chat.completions', 'data: {"error":{"message":"The server had an error","type":"server_error"}}\n\n'],
    ['chat.completions', 'event: error\ndata: {"message":"x"}\n\n'],
    [
      'messages',
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    ],
    ['messages', 'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'],
    ['responses', 'event: error\ndata: {"type":"error","code":"server_error","message":"x"}\n\n'],
    ['responses', 'data: {"error":{"message":"x"}}\n\n'],
    ['generate.stream', 'data: {"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}\r\n\r\n'],
    ['generate.stream', '[{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}]'],
    ['images.edits', 'event: error\ndata: {"type":"error","error":{"code":"x"}}\n\n'],
    ['audio.transcriptions', 'data: {"type":"error","error":{"code":"x"}}\n\n'],
  ]
  for (const [endpoint, wire] of errors) {
    const meter = ended(meterOf(endpoint, [wire]))
    t.strictSame([meter.sawError, meter.sawContent, meter.terminated], [true, false, false], wire)
    t.strictSame(texts(meter.partial()), ['', '', ''])
  }
})

t.test('error: null is not an error', async t => {
  for (const endpoint of ['chat.completions', 'responses', 'generate.stream'] as const) {
    t.equal(meterOf(endpoint, ['data: {"type":"x","error":null}\n\n']).sawError, false)
  }
})

t.test('responses: response.failed and response.incomplete end the stream, and response.failed is an error', async t => {
  const last = (type: string) =>
    `event: ${type}\ndata: {"type":"${type}","response":{"usage":{"input_tokens":3,"output_tokens":4}}}\n\n`
  const incomplete = meterOf('responses', [last('response.incomplete')])
  t.strictSame([incomplete.terminated, incomplete.sawError], [true, false])
  const failed = meterOf('responses', [last('response.failed')])
  t.strictSame([failed.terminated, failed.sawError], [true, true])
  t.strictSame(figures(failed), { inputTokens: 3, outputTokens: 4 })
  const unnamed = meterOf('responses', [last('response.completed').replace(/^event.*\n/, '')])
  t.equal(unnamed.terminated, true, 'the type in the data is enough')
})

t.test('generate: a stream ends when each candidate has finished, or the prompt is blocked', async t => {
  const wire = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
  const candidate = (index: number, finishReason?: string) => wire({ candidates: [{ index, finishReason }] })
  const over = (...events: string[]) => meterOf('generate.stream', events).terminated
  t.equal(over(wire({ candidates: [{ finishReason: 'STOP' }] })), true, 'index 0 is left out')
  t.equal(over(candidate(0, 'STOP'), candidate(1)), false)
  t.equal(over(candidate(0, 'STOP'), candidate(1), candidate(1, 'MAX_TOKENS')), true)
  t.equal(over(candidate(0, 'STOP'), candidate(0)), false, 'the candidate continues after STOP')
  t.equal(over(candidate(0, 'STOP'), wire({ usageMetadata: {} })), true, 'only usage follows')
  t.equal(over(candidate(0, 'FINISH_REASON_UNSPECIFIED')), false)
  t.equal(over(candidate(0, '')), false)
  t.equal(over(wire({ promptFeedback: { blockReason: 'SAFETY' } })), true)
  t.equal(over(wire({ promptFeedback: { blockReason: 'BLOCK_REASON_UNSPECIFIED' } })), false)
  t.equal(over(wire({ promptFeedback: {}, candidates: [] })), false)
  t.equal(
    meterOf('generate.stream', ['[{"candidates":[{"finishReason":"STOP"}]}']).terminated,
    false,
    'array open',
  )
  t.equal(meterOf('generate.stream', ['[{"candidates":[{"finishReason":"STOP"}]}', ']']).terminated, true)
})

t.test('generate: a response with only thoughts has their tokens as its output', async t => {
  const meter = meterOf('generate.stream', [
    'data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}],'
      + '"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}\n\n',
    'data: {"candidates":[{"finishReason":"MAX_TOKENS"}],'
      + '"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":60,"totalTokenCount":65}}\n\n',
  ])
  t.strictSame(figures(meter), { inputTokens: 5, outputTokens: 60, reasoningTokens: 60 })
})

t.test('generate: a response without a count has an unknown output, not 0', async t => {
  const parts = [
    { text: 'hello' }, { functionCall: { args: {} } }, { executableCode: { code: '' } }, { inlineData: { data: '' } },
  ]
  for (const part of parts) {
    const chunk = {
      candidates: [{ content: { parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 5, totalTokenCount: 5 },
    }
    const meter = meterOf('generate.stream', [`data: ${JSON.stringify(chunk)}\n\n`])
    t.equal(meter.terminated, true)
    t.strictSame(figures(meter), { inputTokens: 5 }, Object.keys(part).join())
  }
})

t.test('messages: a stream without event lines is read by the type of each event', async t => {
  const events = messages.events.map(event => event.replace(/^event: .*\n/, ''))
  const meter = ended(meterOf('messages', events))
  t.equal(meter.terminated, true)
  t.strictSame(figures(meter), messages.usage)
})

t.test('an invalid count in a stream is ignored, and makes the reading suspect', async t => {
  for (const figure of ['-1', '"12"', '1e300', '0.5', '[]', '{}', 'true']) {
    const chatMeter = meterOf('chat.completions', [
      `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":${figure}}}\n\n`,
    ])
    t.strictSame(figures(chatMeter), { inputTokens: 7 }, figure)
    t.equal(chatMeter.reading()?.suspect, true)
    const messagesMeter = meterOf('messages', [
      messages.events[0]!,
      `event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":${figure}}}\n\n`,
    ])
    t.equal(messagesMeter.reading()?.usage.outputTokens, null)
    t.equal(messagesMeter.reading()?.suspect, true)
  }
  for (const usage of ['"x"', '5', '[]', '"usage"']) {
    t.equal(
      meterOf('chat.completions', [`data: {"choices":[],"usage":${usage}}\n\n`]).reading()?.suspect,
      true,
      usage,
    )
    t.equal(
      meterOf('messages', [
        `event: message_delta\ndata: {"usage":${usage}}\n\n`,
        messages.events[0]!,
      ]).reading()?.suspect,
      true,
      usage,
    )
  }
  const huge =
    `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"x":"${'y'.repeat(70_000)}"}}\n\n`
  t.equal(meterOf('chat.completions', [huge]).reading()?.suspect, true, 'of absurd size')
})

t.test('a last event ends the stream only if it is well-formed', async t => {
  const last = 'event: response.completed\ndata: {"type":"response.completed","response":{"id":\n\n'
  t.equal(ended(meterOf('responses', [last])).terminated, false)
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}'
  t.match(figures(ended(meterOf('chat.completions', [usage]))), { outputTokens: 1 }, 'only the line end is missing')
})

t.test('malformed events do not throw', async t => {
  const garbage = [
    'data: {\n\n',
    'data: {"choices":[{"delta":{"content":"x\n\n',
    'data: nonsense\n\n',
    'data:\n\n',
    'data: []\n\n',
    'data: {"choices":5,"usage":,}\n\n',
    'event: message_start\ndata: null\n\n',
    '\n\n\n',
    ':\n',
    'data: "[DONE]"\n\n',
    'data: [DONE] \n\ndata: x\n\n',
  ]
  for (const recording of [chat, messages, responses, generate]) {
    const mixed = recording.events.flatMap((event, n) => [garbage[n % (garbage.length - 1)]!, event])
    const meter = ended(meterOf(recording.endpoint, mixed))
    t.equal(meter.terminated, true, recording.name)
    t.strictSame(figures(meter), recording.usage)
  }
  t.equal(meterOf('chat.completions', ['data: "[DONE]"\n\n']).terminated, false)
  for (const done of [' [DONE] ', '\t[DONE]', '[DONE]\t ']) {
    t.equal(meterOf('chat.completions', [`data: ${done}\n\n`]).terminated, true, done)
  }
})

t.test('the size of the kept text is limited, and later text is still counted', async t => {
  const meter = readableMeter(endpointNamed('chat.completions'), { textLimit: 1000 })
  const chunk = Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"some words "}}]}\n\n')
  for (let i = 0; i < 1000; i++) meter.push(chunk)
  const { runs, keptBytes: kept, generatedBytes: came } = meter.partial()
  t.equal(came.content, 11_000)
  t.ok(kept.content > 900 && kept.content <= 1000)
  t.equal(runs[0]?.bytes.length, kept.content)
})

t.test('the usage of an event with 20 MB of base64 is read', async t => {
  const picture = 'A'.repeat(20 * 1024 * 1024)
  const usage = '{"input_tokens":5,"output_tokens":6}'
  const event = Buffer.from(
    `data: {"type":"image_edit.completed","b64_json":"${picture}","usage":${usage}}\n\n`,
  )
  const meter = meterOf('images.edits', chunksOfSize(event, 64 * 1024))
  t.equal(meter.terminated, true)
  t.strictSame(figures(meter), { inputTokens: 5, outputTokens: 6, outputImageTokens: 6, images: 1 })
})

t.test('an event above the size limit counts as content, and is not read', async t => {
  const event = `data: {"choices":[{"delta":{"content":"${'x'.repeat(5000)}"}}]}\n\n`
  const meter = ended(meterOf('chat.completions', [event, 'data: [DONE]\n\n'], { maxEvent: 1000 }))
  t.equal(meter.sawContent, true)
  t.equal(meter.terminated, true)
  t.equal(meter.partial().generatedBytes.content, 0)
  const cut = ended(meterOf('responses', [`data: {"x":"${'x'.repeat(5000)}`], { maxEvent: 1000 }))
  t.equal(cut.terminated, false, 'a cut event does not end the stream')
  const generated = (end: string) =>
    ended(meterOf('generate.stream', [`data: {"x":"${'x'.repeat(5000)}"}${end}`], { maxEvent: 1000 })).terminated
  t.equal(generated('\n\n'), null, 'the event can be the last')
  t.equal(generated(''), false)
  const response = meterOf('responses', [`data: {"x":"${'x'.repeat(5000)}"}\n\n`], { maxEvent: 1000 })
  t.equal(response.terminated, null)
  response.push(Buffer.from('data: {"type":"response.output_text.delta","delta":"hi"}\n\n'))
  t.equal(response.terminated, false, 'another event follows')
})

t.test('a stream without a known protocol is not read', async t => {
  const opaque: [EndpointName, StreamMeterOptions][] = [
    ['other', {}],
    ['models.list', {}],
    ['audio.speech', { contentType: 'audio/mpeg' }],
    ['chat.completions', { contentType: 'application/json' }],
    ['generate.stream', { contentType: 'text/html' }],
  ]
  for (const [endpoint, options] of opaque) {
    const meter = readableMeter(endpointNamed(endpoint), options)
    t.equal(meter.sawContent, false)
    meter.push(Buffer.from('data: [DONE]\n\n'))
    meter.end()
    t.strictSame([meter.terminated, meter.sawContent, meter.reading()], [null, true, null], endpoint)
    t.strictSame(meter.partial().runs, [])
  }
})

t.test('a stream is read by its content type', async t => {
  const types: [Recording, string][] = [
    [chat, 'text/event-stream; charset=utf-8'],
    [generate, 'TEXT/EVENT-STREAM'],
    [generateArray, 'application/json'],
  ]
  for (const [{ endpoint, events }, contentType] of types) {
    t.equal(ended(meterOf(endpoint, events, { contentType })).terminated, true, contentType)
  }
})
