import { GatewayError } from '../../../base/errors.ts'
import { haveTooManyObjects } from './arguments-size.ts'
import { ResponseCollector } from './collect.ts'
import { reasonIn } from '../error-reason.ts'
import { CONTEXT_LENGTH } from '../errors.ts'
import { FreeformUnwrapper } from './freeform.ts'
import type { JsonObject } from '../json.ts'
import { startEvent, type ErrorEvent, type EventOutput, type NeutralResponse, type ResponseEvent } from '../response.ts'
import type { ToolNames } from './tool-names.ts'
import { WholeCharacters } from './whole-characters.ts'
import type { ClientContext, ClientSide, ResponseReader, ResponseWriter, UpstreamSide } from '../translation.ts'

/** Number of characters that are encoded together: V8 copies a text of many pieces several times. */
const BLOCK = 32 * 1024

/** Translates one streamed response. Each event that the reader pushes is written at once. */
export class StreamTranslator implements EventOutput {
  readonly #reader: ResponseReader
  readonly #writer: ResponseWriter
  readonly #unwrapper: FreeformUnwrapper
  readonly #toolNames: ToolNames | null
  readonly #characters = new WholeCharacters()
  /** Whole events for the client that `take` has not returned: first the encoded blocks, then the text. */
  #blocks: Buffer[] = []
  #text = ''
  #hasStarted = false
  #hasStopped = false
  #isOver = false

  constructor(client: ClientSide, upstream: UpstreamSide, context: ClientContext, provider: string, toolNames: ToolNames | null = null) {
    this.#reader = upstream.createReader(provider)
    this.#writer = context.request.stream ? client.createWriter(context) : new BodyWriter(client, context)
    this.#unwrapper = new FreeformUnwrapper(context.request)
    this.#toolNames = toolNames
  }

  /** true if the client's stream has got its end or an error. */
  get isOver(): boolean {
    return this.#isOver
  }

  get hasText(): boolean {
    return this.#text !== '' || this.#blocks.length > 0
  }

  /** @returns the events for the client since the last call */
  take(): Buffer {
    const rest = Buffer.from(this.#text)
    const bytes = this.#blocks.length === 0 ? rest : Buffer.concat([...this.#blocks, rest])
    this.#blocks = []
    this.#text = ''
    return bytes
  }

  /** @param name the event's name; '' = none @param value the data as parsed JSON; undefined = not JSON */
  event(name: string, value: unknown): void {
    const text = this.#text
    const { length } = this.#blocks
    try {
      this.#reader.event(name, value, this)
    } catch (thrown) {
      throw this.#undone(text, length, thrown)
    }
  }

  /** Ends a complete stream. @throws GatewayError upstream_cut if the upstream sent no stop reason */
  end(): void {
    const text = this.#text
    const { length } = this.#blocks
    try {
      this.#reader.end?.(this)
      this.push({ type: 'end' })
    } catch (thrown) {
      throw this.#undone(text, length, thrown)
    }
  }

  /** Writes a whole response as stream events. @throws GatewayError upstream_invalid */
  whole(value: JsonObject): void {
    const events: ResponseEvent[] = []
    readBody(this.#reader, value, events)
    for (const event of events) this.push(event)
  }

  stop(): void {
    this.#isOver = true
  }

  /** Removes the output of an event that cannot be translated. @returns `thrown`, for the caller to throw */
  #undone(text: string, blocks: number, thrown: unknown): unknown {
    this.#text = text
    this.#blocks.length = blocks
    return thrown
  }

  /** Writes an event of the reader. Adds the start event if the upstream's stream has none. */
  push(given: ResponseEvent): void {
    if (this.#isOver) return
    if (given.type === 'start') {
      if (this.#hasStarted) return
      this.#hasStarted = true
    } else if (!this.#hasStarted && given.type !== 'ping' && given.type !== 'error') {
      this.push(startEvent(null, null, null))
    }
    const whole = this.#characters.next(given)
    const read = whole.type === 'error' ? withReason(whole) : whole
    // Without a stop reason the response is incomplete. The client's protocol cannot end such a response.
    if (read.type === 'end' && !this.#hasStopped) throw new GatewayError('upstream_cut', 'the upstream ended the stream before it was complete')
    this.#hasStopped ||= read.type === 'stop'
    for (const event of this.#unwrapper.next(this.#toolNames?.restore(read) ?? read)) this.#text += this.#writer.write(event)
    this.#isOver = read.type === 'end' || read.type === 'error'
    if (this.#text.length < BLOCK) return
    this.#blocks.push(Buffer.from(this.#text))
    this.#text = ''
  }
}

/** Writes a whole body at the end of the upstream's stream, for a client that did not ask for a stream. */
class BodyWriter implements ResponseWriter {
  readonly #client: ClientSide
  readonly #context: ClientContext
  readonly #collector = new ResponseCollector()

  constructor(client: ClientSide, context: ClientContext) {
    this.#client = client
    this.#context = context
  }

  write(event: ResponseEvent): string {
    this.#collector.add(event)
    const isLast = event.type === 'end' || event.type === 'error'
    return isLast ? JSON.stringify(writeWhole(this.#client, this.#collector, this.#context)) : ''
  }
}

/** Translates a whole response, or an error that has a 2xx status. @throws GatewayError upstream_invalid */
export function translateBody(
  client: ClientSide, upstream: UpstreamSide, body: JsonObject, context: ClientContext, provider: string, toolNames: ToolNames | null = null,
): JsonObject {
  const read: ResponseEvent[] = []
  readBody(upstream.createReader(provider), body, read)
  const unwrapper = new FreeformUnwrapper(context.request)
  const collector = new ResponseCollector()
  const characters = new WholeCharacters()
  for (const given of read) {
    const event = characters.next(given)
    for (const unwrapped of unwrapper.next(toolNames?.restore(event) ?? event)) collector.add(unwrapped)
  }
  return writeWhole(client, collector, context)
}

function readBody(reader: ResponseReader, body: JsonObject, out: ResponseEvent[]): void {
  reader.body(body, out)
  if (out.length === 0) throw new GatewayError('upstream_invalid', 'the upstream responded with JSON that is not a response of its protocol')
  // Throws for a fault of the content, such as a call without a name. The caller handles errors that the upstream reports.
  const fault = out.find(event => event.type === 'error' && event.error.code === 'upstream_invalid')
  if (fault?.type === 'error') throw new GatewayError('upstream_invalid', fault.error.message)
  if (!out.some(({ type }) => type === 'stop' || type === 'error')) addStop(out)
}

/** Adds a stop, for servers that report no stop reason. @throws GatewayError upstream_cut if the body ends inside a call */
function addStop(out: ResponseEvent[]): void {
  const collector = new ResponseCollector()
  for (const event of out) collector.add(event)
  const { parts } = collector.result as NeutralResponse
  const calls = parts.filter(({ part }) => part.type === 'tool_call' && !part.isFreeform)
  if (calls.some(({ text }) => text !== '' && !isJson(text))) throw new GatewayError('upstream_cut', 'the upstream responded with a tool call that is not whole')
  const hasCalls = parts.some(({ part }) => part.type === 'tool_call')
  const behind = out.findLastIndex(({ type }) => type === 'part_end' || type === 'start') + 1
  out.splice(behind, 0, { type: 'stop', reason: hasCalls ? 'tool_calls' : 'end', sequence: null, explanation: null })
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false // The arguments are truncated.
  }
}

/** Adds the code of a request that is too long, because clients recognise the error by this code. */
function withReason(event: ErrorEvent): ErrorEvent {
  const { error } = event
  return reasonIn({ ...error }) === 'context_length' ? { ...event, error: { ...error, code: CONTEXT_LENGTH } } : event
}

function writeWhole(client: ClientSide, { result: response }: ResponseCollector, context: ClientContext): JsonObject {
  if ('kind' in response) return client.writeError(withReason({ type: 'error', error: response }).error, context.requestId)
  const calls = response.parts.filter(({ part }) => part.type === 'tool_call')
  if (haveTooManyObjects(calls.map(({ text }) => text))) {
    throw new GatewayError('upstream_invalid', 'the arguments of the calls in the response have too many values')
  }
  return client.writeBody(response, context)
}
