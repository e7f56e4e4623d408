import { eventFrame } from '../support/aws.ts'
import { chatVendor } from '../support/vendors/chat.ts'
import { generateVendor } from '../support/vendors/generate.ts'
import { messagesVendor } from '../support/vendors/messages.ts'
import { responsesVendor } from '../support/vendors/responses.ts'
import type { Turn, Vendor } from '../support/vendors/vendor.ts'
import { figure, raw, render, renderItems } from './template.ts'
import type { Figures, Template } from './template.ts'

/** How a list of events is written; `whole`: the body is one JSON value, or bytes. */
export type Framing = 'whole' | 'sse' | 'array' | 'chunk frames' | 'converse frames'

/** What an upstream responds with. */
export interface ResponseSeed {
  readonly status: number
  readonly framing: Framing
  readonly body: Template
  readonly type?: string
}

/** What happens to its bytes on their way. */
export interface Wire {
  /** Thousandths of the bytes that are sent before the connection breaks; null = all, and it ends in order. */
  readonly cut: number | null
  /** Thousandths at which one byte is another; null = none is. */
  readonly flip: number | null
  /** Bytes sent at a time; 0 = all at once. */
  readonly piece: number
  readonly encoding: string
  /** Ends of lines in a stream of events. */
  readonly eol: string
}

export const PLAIN: Wire = { cut: null, flip: null, piece: 0, encoding: '', eol: '\n' }

const TURNS: readonly Turn[] = [
  { thinking: 'Hm.', text: 'I look: é😀', calls: [{ name: 'look', input: { at: 'a' } }, { name: 'files__find', input: {} }] }, { text: 'A bird.' },
  { calls: [{ name: 'patch', input: { input: 'x' }, isFreeform: true }, { name: 'look', input: { list: [1, { a: 'b' }] } }] },
]

const FIGURES: Readonly<Record<string, string>> = {
  prompt_tokens: 'input', input_tokens: 'input', promptTokenCount: 'input', completion_tokens: 'output', output_tokens: 'output', candidatesTokenCount: 'output',
}
const PARTS_OF_FIGURES = /^(?:cached_tokens|reasoning_tokens|thinking_tokens|thoughtsTokenCount|cachedContentTokenCount|cache_read_input_tokens|cache_creation_input_tokens|cache_write_tokens)$/

/** By the kind of request: `chat`, `chat stream`. The first of each is a whole response that reports its usage. */
export const RESPONSES: Readonly<Record<string, readonly ResponseSeed[]>> = {
  ...ofVendor(chatVendor, 'sse', [raw('[DONE]')]), ...ofVendor(responsesVendor, 'sse'), ...ofVendor(messagesVendor, 'sse'), ...ofVendor(generateVendor, 'sse'),
  'generate array': streamsOf(generateVendor, 'array'), 'invoke stream': streamsOf(messagesVendor, 'chunk frames'),
  'converse': [whole({ output: { message: { role: 'assistant', content: [{ reasoningContent: { reasoningText: { text: 'Hm.', signature: 'S' } } }, { text: 'Hello' }, { toolUse: { toolUseId: 't1', name: 'look', input: { at: 1 } } }] } }, stopReason: 'tool_use', usage: converseUsage(), metrics: { latencyMs: 5 } }), error(400, { message: 'too long' })],
  'converse stream': [{ status: 200, framing: 'converse frames', body: [
    { messageStart: { role: 'assistant' } }, { contentBlockDelta: { contentBlockIndex: 0, delta: { reasoningContent: { text: 'Hm.' } } } }, { contentBlockDelta: { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'S' } } } }, { contentBlockStop: { contentBlockIndex: 0 } },
    { contentBlockDelta: { contentBlockIndex: 1, delta: { text: 'Hel' } } }, { contentBlockDelta: { contentBlockIndex: 1, delta: { text: 'lo' } } }, { contentBlockStop: { contentBlockIndex: 1 } },
    { contentBlockStart: { contentBlockIndex: 2, start: { toolUse: { toolUseId: 't1', name: 'look' } } } }, { contentBlockDelta: { contentBlockIndex: 2, delta: { toolUse: { input: '{"at":1}' } } } }, { contentBlockStop: { contentBlockIndex: 2 } },
    { messageStop: { stopReason: 'tool_use' } }, { metadata: { usage: converseUsage(), metrics: { latencyMs: 5 } } },
  ] }, error(429, { message: 'slow down' })],
  'completions': [whole({ id: 'c', object: 'text_completion', created: 1, model: 'm', choices: [{ index: 0, text: 'x', finish_reason: 'stop', logprobs: null }], usage: { prompt_tokens: figure('input'), completion_tokens: figure('output') } })],
  'completions stream': [{ status: 200, framing: 'sse', body: [{ id: 'c', object: 'text_completion', choices: [{ index: 0, text: 'x', finish_reason: null }] }, { id: 'c', choices: [{ index: 0, text: '', finish_reason: 'stop' }] }, { id: 'c', choices: [], usage: { prompt_tokens: figure('input'), completion_tokens: figure('output') } }, raw('[DONE]')] }],
  'embeddings': [whole({ object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [0.5, -1] }, { object: 'embedding', index: 1, embedding: 'AAAAPwAAgL8=' }], usage: { prompt_tokens: figure('input'), total_tokens: figure('input') } })],
  'embedContent': [whole({ embedding: { values: [0.5, -1] }, usageMetadata: { promptTokenCount: figure('input') } })],
  'batchEmbedContents': [whole({ embeddings: [{ values: [0.5, -1] }, { values: [1, 2] }] })],
  'predict': [whole({ predictions: [{ embeddings: { values: [0.5, -1], statistics: { token_count: 2 } } }] })],
  'count_tokens': [whole({ input_tokens: 7 })], 'countTokens': [whole({ totalTokens: 7 })],
  'images': [whole({ created: 1, data: [{ b64_json: 'AAAA' }], usage: { input_tokens: figure('input'), output_tokens: 5, total_tokens: 9 } })],
  'images stream': [{ status: 200, framing: 'sse', body: [{ type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 }, { type: 'image_generation.completed', b64_json: 'AAAA', usage: { input_tokens: figure('input'), output_tokens: 5 } }] }],
  'speech': [{ status: 200, framing: 'whole', body: raw('sound'), type: 'audio/mpeg' }, { status: 200, framing: 'sse', body: [{ type: 'speech.audio.delta', audio: 'AAAA' }, { type: 'speech.audio.done', usage: { input_tokens: figure('input'), output_tokens: 5 } }] }],
  'transcriptions': [whole({ text: 'hello', usage: { type: 'tokens', input_tokens: figure('input'), output_tokens: 2 } }), whole({ text: 'hello', usage: { type: 'duration', seconds: 3 } }), { status: 200, framing: 'whole', body: raw('1\n00:00 --> 00:01\nhello'), type: 'text/plain' }],
  'interactions stream': [{ status: 200, framing: 'sse', body: [{ event_type: 'interaction.start', interaction: { id: 'i' } }, { event_type: 'content.delta', delta: { type: 'text', text: 'x' } }, { event_type: 'interaction.complete', interaction: { id: 'i', usage: { total_input_tokens: figure('input'), total_output_tokens: figure('output') } } }] }],
  'other': [whole({ id: 'x', object: 'batch', status: 'in_progress', usage: { input_tokens: figure('input'), output_tokens: figure('output') } }), error(404, { error: { message: 'no such thing' } })],
}

/** What every kind of request may get, whatever it is. */
const ODD_RESPONSES: readonly ResponseSeed[] = [
  ...[400, 401, 403, 404, 408, 429, 500, 503, 529].map(status => error(status, { error: { message: 'prompt is too long: 9 tokens', type: 'invalid_request_error', code: 'context_length_exceeded', details: [{ a: 1 }] } })),
  error(400, { detail: [{ loc: ['body', 'x'], msg: 'wrong' }] }), error(400, { detail: 'wrong' }), error(422, { error: ['a', 'b'] }), error(500, { error: 'x' }), error(400, [{ error: { code: 400, message: 'x', status: 'INVALID_ARGUMENT' } }]),
  { status: 502, framing: 'whole', body: raw('<html>Bad Gateway</html>'), type: 'text/html' }, { status: 200, framing: 'whole', body: raw(''), type: 'application/json' }, { status: 200, framing: 'whole', body: raw('Hello'), type: 'text/plain' },
  whole({ error: { message: 'x', code: 400 } }), whole({}), whole([]), whole(null), whole('x'), { status: 200, framing: 'sse', body: [{ error: { message: 'x', code: 429 } }] }, { status: 200, framing: 'sse', body: [] }, { status: 204, framing: 'whole', body: raw('') },
]

/** @param by chooses; 0 = a whole response that reports its usage. @returns what an upstream can respond with to this kind of request */
export function chooseResponse(kind: string, by: number): ResponseSeed {
  const own = RESPONSES[kind] ?? RESPONSES[kind.replace(/ (?:stream|array)$/, '')] ?? RESPONSES['other'] ?? []
  const other = Object.values(RESPONSES)[by % Object.keys(RESPONSES).length] ?? []
  const all = by % 5 === 4 ? [...ODD_RESPONSES, ...other] : own
  return all[Math.floor(by / 5) % all.length] as ResponseSeed
}

/** @returns the response's bytes before its content coding */
export function bytesOf({ framing, body }: ResponseSeed, { eol, flip }: Wire, figures: Figures): Buffer {
  const bytes = framed(framing, body, figures, eol)
  if (flip !== null && bytes.length > 0) {
    const at = Math.floor(bytes.length * flip / 1000) % bytes.length
    bytes[at] = (bytes[at] ?? 0) ^ (1 << flip % 8)
  }
  return bytes
}

export function contentTypeOf({ framing, type }: ResponseSeed): string {
  if (type !== undefined) return type
  if (framing === 'sse') return 'text/event-stream'
  return framing.endsWith('frames') ? 'application/vnd.amazon.eventstream' : 'application/json'
}

function framed(framing: Framing, body: Template, figures: Figures, eol: string): Buffer {
  switch (framing) {
    case 'whole': return Buffer.from(render(body, figures))
    case 'array': return Buffer.from(`[${renderItems(body, figures).join(`${eol},${eol}`)}]`)
    case 'sse': return Buffer.from(renderItems(body, figures).map(data => {
      const name = /^\{"type":"([\w.]+)"/.exec(data.slice(0, 80))?.[1]
      return `${name === undefined ? '' : `event: ${name}${eol}`}data: ${data}${eol}${eol}`
    }).join(''))
    case 'chunk frames': return Buffer.concat(renderItems(body, figures).map(data => eventFrame(
      { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' }, `{"bytes":"${Buffer.from(data).toString('base64')}","p":"abc"}`,
    )))
    case 'converse frames': return Buffer.concat(renderItems(body, figures).map(data => {
      const [, name = 'chunk', payload = data] = /^\{"(\w+)":(.*)\}$/s.exec(data) ?? []
      return eventFrame({ ':event-type': name, ':content-type': 'application/json', ':message-type': 'event' }, payload)
    }))
  }
}

function whole(body: Template): ResponseSeed {
  return { status: 200, framing: 'whole', body }
}

function error(status: number, body: Template): ResponseSeed {
  return { status, framing: 'whole', body }
}

function converseUsage(): Template {
  return { inputTokens: figure('input'), outputTokens: figure('output'), totalTokens: 12, cacheReadInputTokens: 0 }
}

function ofVendor(vendor: Vendor, framing: Framing, end: Template[] = []): Record<string, ResponseSeed[]> {
  const fault = error(400, withFigures(vendor.error('wrong') as Template))
  return {
    [vendor.protocol]: [...TURNS.map((turn, number) => whole(withFigures(vendor.body(turn, number) as Template))), fault],
    [`${vendor.protocol} stream`]: [...streamsOf(vendor, framing, end), fault],
  }
}

function streamsOf(vendor: Vendor, framing: Framing, end: Template[] = []): ResponseSeed[] {
  return TURNS.map((turn, number) => {
    const events = String(vendor.stream(turn, number)).split('\n').filter(line => line.startsWith('data: {')).map(line => withFigures(JSON.parse(line.slice(6)) as Template))
    return { status: 200, framing, body: [...events, ...end] }
  })
}

/** With instructions in place of the usage that a vendor reports in tests. */
function withFigures(template: Template): Template {
  if (Array.isArray(template)) return template.map(withFigures)
  if (typeof template !== 'object' || template === null) return template
  return Object.fromEntries(Object.entries(template).map(([key, value]) => {
    const name = FIGURES[key]
    if (typeof value !== 'number') return [key, withFigures(value)]
    return [key, name !== undefined ? figure(name) : PARTS_OF_FIGURES.test(key) ? 0 : value]
  }))
}
