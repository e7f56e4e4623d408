import type { Received } from './client.ts'
import { parsedOr } from './figures.ts'
import type { RequestSeed } from './requests.ts'

type Protocol = RequestSeed['protocol']

/*
 * What a client of each protocol relies on in a response that the gateway itself wrote: an error, or a translated one.
 */

/** Of a value: its type; of an object members that it must have; of a list what each item must be; or a test. */
type Shape = 'string' | 'number' | 'boolean' | 'array' | 'object' | { readonly [key: string]: Shape } | readonly [Shape] | ((value: unknown) => boolean)

const orNull = (shape: Shape): Shape => value => value === null || misfit(value, shape) === null
const optional = (shape: Shape): Shape => value => value === undefined || misfit(value, shape) === null
const equal = (expected: unknown): Shape => value => value === expected
const count: Shape = value => Number.isSafeInteger(value) && Number(value) >= 0

const ERRORS: Readonly<Record<Protocol, Shape>> = {
  chat: { error: { message: 'string', type: 'string' } }, responses: { error: { message: 'string', type: 'string' } },
  messages: { type: equal('error'), error: { type: 'string', message: 'string' } }, generate: { error: { code: 'number', message: 'string', status: 'string' } },
}

const USAGE = { prompt_tokens: count, completion_tokens: count } as const
const named: Shape = value => typeof value === 'string' && value !== ''
const NAMED: Shape = { name: named }
const TOOL_CALLS: Shape = [{ id: named, type: 'string', function: optional(NAMED), custom: optional(NAMED) }]
const BODIES: Readonly<Record<string, Shape>> = {
  '/v1/chat/completions': { id: 'string', object: equal('chat.completion'), created: 'number', model: 'string', usage: optional(orNull(USAGE)), choices: [{ index: 'number', finish_reason: 'string', message: { role: equal('assistant'), content: orNull('string'), tool_calls: optional(TOOL_CALLS) } }] },
  '/v1/responses': { id: 'string', object: equal('response'), created_at: 'number', status: 'string', model: 'string', output: [{ type: 'string' }], usage: optional(orNull({ input_tokens: count, output_tokens: count })) },
  '/v1/messages': { id: 'string', type: equal('message'), role: equal('assistant'), model: 'string', content: [{ type: 'string', name: optional(named) }], stop_reason: 'string', usage: { input_tokens: count, output_tokens: count } },
  ':generateContent': { candidates: optional([{ content: optional({ role: equal('model'), parts: optional(['object']) }), finishReason: 'string' }]) },
  '/v1/embeddings': { object: equal('list'), data: [{ index: 'number' }], model: 'string' },
  '/v1/messages/count_tokens': { input_tokens: count }, ':countTokens': { totalTokens: count }, '/v1/responses/input_tokens': { input_tokens: count },
  ':embedContent': { embedding: { values: ['number'] } }, ':batchEmbedContents': { embeddings: optional([{ values: ['number'] }]), embedding: optional({ values: ['number'] }) },
}

/** Of each event of a stream; and what must have come when a stream ends in order. */
const EVENTS: Readonly<Record<Protocol, Shape>> = {
  chat: { id: named, object: 'string', created: 'number', model: named, choices: [{ index: 'number', delta: 'object' }] }, responses: { type: 'string', sequence_number: 'number' }, messages: { type: 'string' },
  generate: { responseId: named, modelVersion: named, candidates: optional([{ content: optional({ parts: optional([{ functionCall: optional(NAMED) }]) }) }]) },
}
const ENDS: Readonly<Record<Protocol, RegExp>> = {
  chat: /\[DONE\]|"type":\s*"(?:image_generation|image_edit|speech|transcript)\.[\w.]*(?:completed|done)"/, responses: /"type":\s*"response\.(?:completed|incomplete|failed)"|event: response\.(?:completed|incomplete|failed)/, messages: /"type":\s*"message_stop"|event: message_stop/, generate: /finishReason|finish_reason|blockReason|interaction\.complete|\[DONE\]/,
}

/** Paths whose streams end with an event of their protocol. */
const STREAMS = /\/(?:completions|responses|messages)(?:\?|$)|:streamGenerateContent/
/** An upstream's own, which ends a stream too. */
const ERROR_EVENT = /"error"/

/** @returns where the value is not of the shape; null = it is */
function misfit(value: unknown, shape: Shape, at = ''): string | null {
  const wrong = `${at || 'body'}: ${JSON.stringify(value)?.slice(0, 80)}`
  if (typeof shape === 'function') return shape(value) ? null : wrong
  if (shape === 'array') return Array.isArray(value) ? null : wrong
  if (typeof shape === 'string') return typeof value === shape && value !== null ? null : wrong
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return wrong
    for (const [n, item] of value.entries()) {
      const found = misfit(item, (shape as readonly [Shape])[0], `${at}[${n}]`)
      if (found !== null) return found
    }
    return null
  }
  if (typeof value !== 'object' || value === null) return wrong
  for (const [key, member] of Object.entries(shape)) {
    const found = misfit((value as Record<string, unknown>)[key], member as Shape, `${at}.${key}`)
    if (found !== null) return found
  }
  return null
}

/** @returns what is wrong with an error that the gateway wrote; null = nothing */
export function errorFault(protocol: Protocol, { status, headers, body }: Received): string | null {
  if (!String(headers['content-type']).startsWith('application/json')) return `error ${status} of type ${headers['content-type']}`
  const parsed = parsedOr(null, body ?? Buffer.alloc(0))
  const found = misfit(Array.isArray(parsed) && protocol === 'generate' ? parsed[0] : parsed, ERRORS[protocol])
  return found && `error ${status}: ${found}`
}

/** @returns what is wrong with a translated response that is no error; null = nothing */
export function translatedFault(protocol: Protocol, path: string, { headers, body, isWhole }: Received): string | null {
  if (String(headers['content-type']).startsWith('text/event-stream')) return streamFault(protocol, String(body), isWhole)
  if (!isWhole) return null
  const parsed = parsedOr(undefined, body ?? Buffer.alloc(0))
  if (parsed === undefined) return 'a body that is no JSON'
  if (/:streamGenerateContent/.test(path)) return misfit(parsed, [item => misfit(item, isError(item) ? ERRORS.generate : EVENTS.generate) === null])
  const [plain = ''] = path.split('?')
  return misfit(parsed, BODIES[plain] ?? BODIES[plain.slice(plain.lastIndexOf(':'))] ?? {})
}

function isError(event: unknown): boolean {
  return typeof event === 'object' && event !== null && 'error' in event
}

function streamFault(protocol: Protocol, text: string, isWhole: boolean): string | null {
  if (isWhole && !text.endsWith('\n\n')) return 'a stream that ends inside an event'
  const blocks = text.split('\n\n').slice(0, -1)
  for (const block of blocks) {
    const data = block.split('\n').find(line => line.startsWith('data:'))?.slice(5).trim()
    if (data === undefined || data === '[DONE]') continue
    const event = parsedOr(undefined, Buffer.from(data))
    if (event === undefined) return `an event that is no JSON: ${data.slice(0, 100)}`
    const found = misfit(event, isError(event) ? ERRORS[protocol] : EVENTS[protocol])
    if (found !== null) return `an event: ${found}`
    if (protocol === 'messages' && !block.startsWith('event: ')) return 'an event without a name'
  }
  return null
}

/**
 * @returns whether it is a stream that says it is whole, without the event that ends one of its protocol. The gateway does
 * not look into a stream that is compressed although it asked for none.
 */
export function endsTooSoon(protocol: Protocol, path: string, { status, headers, body, isWhole }: Received): boolean {
  return STREAMS.test(path) && isWhole && status === 200 && headers['content-encoding'] === undefined && String(headers['content-type']).startsWith('text/event-stream') && !ENDS[protocol].test(String(body)) && !ERROR_EVENT.test(String(body))
}
