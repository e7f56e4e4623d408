import { errorKindOf } from '../neutral/errors.ts'
import { asList, asNumber, asObject, asText, withoutNulls, type JsonObject } from '../neutral/json.ts'
import { NumberedParts } from '../neutral/numbered-parts.ts'
import { startEvent, type NeutralError, type EventOutput, type ResponsePart, type StopReason } from '../neutral/response.ts'
import type { ResponseReader } from '../neutral/translation.ts'
import { errorIn } from '../neutral/error-body.ts'
import { readTokens } from '../usage/token-usage.ts'
import { MESSAGES_USAGE } from './usage.ts'

const STOP_REASONS: ReadonlyMap<string, StopReason> = new Map(Object.entries({
  end_turn: 'end', max_tokens: 'max_tokens', model_context_window_exceeded: 'context_window', stop_sequence: 'stop_sequence',
  tool_use: 'tool_calls', refusal: 'refusal', pause_turn: 'pause',
}))

/** Reads a streamed or whole message. Leaves out the blocks of tools that the provider runs itself. */
export class MessagesResponseReader implements ResponseReader {
  readonly #provider: string
  readonly #parts: NumberedParts
  #usage: Record<string, unknown> | null = null
  #isOver = false

  constructor(provider: string) {
    this.#provider = provider
    this.#parts = new NumberedParts(provider)
  }

  event(name: string, value: unknown, out: EventOutput): void {
    const event = asObject(value)
    if (event === null || this.#isOver) return
    const number = asNumber(event['index']) ?? 0
    switch (asText(event['type']) ?? name) {
      case 'message_start': return this.#start(asObject(event['message']) ?? {}, out)
      case 'content_block_start': return this.#startBlock(number, asObject(event['content_block']) ?? {}, out)
      case 'content_block_delta': return this.#delta(number, asObject(event['delta']) ?? {}, out)
      case 'content_block_stop': return this.#parts.end(number, out)
      case 'message_delta': return this.#finish(asObject(event['delta']) ?? {}, event['usage'], out)
      case 'message_stop':
        this.end(out)
        this.#isOver = true
        out.push({ type: 'end' })
        break
      case 'ping':
        out.push({ type: 'ping' })
        break
      case 'error':
        this.#isOver = true
        out.push({ type: 'error', error: readMessagesError(500, event) })
        break
    }
  }

  body(value: JsonObject, out: EventOutput): void {
    if ((value['error'] ?? null) !== null) {
      out.push({ type: 'error', error: readMessagesError(500, value) })
      return
    }
    if (!Array.isArray(value['content'])) return
    this.#start(value, out)
    for (const [number, block] of asList(value['content']).entries()) {
      this.#startBlock(number, asObject(block) ?? {}, out)
      this.#parts.end(number, out)
    }
    this.#finish(value, null, out)
    this.end(out)
    out.push({ type: 'end' })
  }

  /** Reads the usage once, at the end, because each event may report some of the counts, and a long list. */
  end(out: EventOutput): void {
    this.#parts.endAll(out)
    const tokens = this.#isOver ? null : readTokens(MESSAGES_USAGE, this.#usage)
    if (tokens !== null) out.push({ type: 'usage', usage: tokens })
  }

  #start(message: JsonObject, out: EventOutput): void {
    this.#mergeUsage(message['usage'])
    out.push(startEvent(asText(message['id']), asText(message['model']), readTokens(MESSAGES_USAGE, this.#usage, false)))
  }

  #startBlock(number: number, block: JsonObject, out: EventOutput): void {
    const part = this.#partOf(block)
    if (part === null) return
    this.#parts.start(number, part, out)
    const text = asText(block['text']) ?? asText(block['thinking']) ?? inputText(block['input'])
    this.#parts.add(number, text, asText(block['signature']), out)
  }

  /** @returns null = the client does not get the block */
  #partOf(block: JsonObject): ResponsePart | null {
    switch (block['type']) {
      case 'text':
      case 'thinking': return { type: block['type'] }
      case 'redacted_thinking':
        return { type: 'redacted_thinking', opaque: { provider: this.#provider, value: asText(block['data']) ?? '' } }
      case 'tool_use':
        return { type: 'tool_call', id: asText(block['id']) ?? '', name: asText(block['name']) ?? '', isFreeform: false, opaque: null }
      default: return null
    }
  }

  #delta(number: number, delta: JsonObject, out: EventOutput): void {
    const text = asText(delta['text']) ?? asText(delta['thinking']) ?? asText(delta['partial_json']) ?? ''
    this.#parts.add(number, text, asText(delta['signature']), out)
  }

  /** @param delta the `delta` of `message_delta`, or the whole message */
  #finish(delta: JsonObject, usage: unknown, out: EventOutput): void {
    this.#parts.endAll(out)
    this.#mergeUsage(usage)
    const reason = asText(delta['stop_reason'])
    if (reason === null) return
    const explanation = asText(asObject(delta['stop_details'])?.['explanation'])
    out.push({ type: 'stop', reason: STOP_REASONS.get(reason) ?? 'end', sequence: asText(delta['stop_sequence']), explanation })
  }

  /** Merges reported counts. They are cumulative: if a count is null or missing, the earlier count stays. */
  #mergeUsage(value: unknown): void {
    const given = asObject(value)
    if (given !== null) this.#usage = Object.assign(this.#usage ?? Object.create(null) as Record<string, unknown>, withoutNulls(given))
  }
}

/** HTTP statuses for error types in a stream. */
const STATUSES: ReadonlyMap<string, number> = new Map(Object.entries({
  invalid_request_error: 400, authentication_error: 401, billing_error: 402, permission_error: 403, not_found_error: 404,
  request_too_large: 413, rate_limit_error: 429, api_error: 500, timeout_error: 504, overloaded_error: 529,
}))

/** Reads an error of the shape `{type: "error", error: {type, message}}`. */
export function readMessagesError(status: number, body: unknown): NeutralError {
  const error = errorIn(body) ?? {}
  const type = asText(error['type']) || null
  const actual = status === 500 && type !== null ? STATUSES.get(type) ?? status : status
  const message = asText(error['message']) ?? `the upstream responded with the status ${status}`
  return { kind: errorKindOf(actual, type), status: actual, message, code: type, param: null }
}

/** The input of a tool call as JSON text, from servers that send the input in the start of the block. */
function inputText(input: unknown): string {
  const value = asObject(input)
  return value === null || Object.keys(value).length === 0 ? '' : JSON.stringify(value)
}
