import { asList, asNumber, asObject, asText, type JsonObject } from '../neutral/json.ts'
import { NumberedParts } from '../neutral/numbered-parts.ts'
import { startEvent, type EventOutput, type ResponsePart, type StopReason } from '../neutral/response.ts'
import type { ResponseReader } from '../neutral/translation.ts'
import { readTokens } from '../usage/token-usage.ts'
import { readConverseError } from './errors.ts'
import { CONVERSE_USAGE } from './usage.ts'

const STOP_REASONS: ReadonlyMap<string, StopReason> = new Map(Object.entries({
  end_turn: 'end', tool_use: 'tool_calls', max_tokens: 'max_tokens', model_context_window_exceeded: 'context_window',
  stop_sequence: 'stop_sequence', guardrail_intervened: 'content_filter', content_filtered: 'content_filter', refusal: 'refusal',
}))

/** Reads responses of Converse and ConverseStream. */
export class ConverseResponseReader implements ResponseReader {
  readonly #provider: string
  readonly #parts: NumberedParts
  #isOver = false

  constructor(provider: string) {
    this.#provider = provider
    this.#parts = new NumberedParts(provider)
  }

  event(name: string, value: unknown, out: EventOutput): void {
    const event = asObject(value)
    if (event === null || this.#isOver) return
    const number = asNumber(event['contentBlockIndex']) ?? 0
    switch (name) {
      case 'messageStart':
        out.push(startEvent(null, null, null))
        break
      case 'contentBlockStart':
        this.#parts.start(number, this.#partOf(asObject(event['start']) ?? {}), out)
        break
      case 'contentBlockDelta':
        this.#delta(number, asObject(event['delta']) ?? {}, out)
        break
      case 'contentBlockStop':
        this.#parts.end(number, out)
        break
      case 'messageStop':
        this.#stop(event, out)
        break
      case 'metadata':
        this.#isOver = true
        this.end(out)
        pushEnd(event, out)
        break
      case 'error':
        this.#isOver = true
        out.push({ type: 'error', error: readConverseError(null, event) })
        break
    }
  }

  end(out: EventOutput): void {
    this.#parts.endAll(out)
  }

  body(value: JsonObject, out: EventOutput): void {
    const message = asObject(asObject(value['output'])?.['message'])
    if (message === null) return
    out.push(startEvent(null, null, null))
    for (const [number, block] of asList(message['content']).entries()) {
      this.#delta(number, asObject(block) ?? {}, out)
      this.#parts.end(number, out)
    }
    this.#stop(value, out)
    pushEnd(value, out)
  }

  /** Reads a piece of a block, or a whole block: both have members of the same names. Starts the part if the stream sent no start event. */
  #delta(number: number, delta: JsonObject, out: EventOutput): void {
    if (!this.#parts.isOpen(number)) this.#parts.start(number, this.#partOf(delta), out)
    const reasoning = asObject(delta['reasoningContent'])
    const whole = asObject(reasoning?.['reasoningText']) ?? reasoning
    const text = asText(delta['text']) ?? asText(whole?.['text']) ?? inputText(asObject(delta['toolUse'])?.['input'])
    this.#parts.add(number, text, asText(whole?.['signature']), out)
  }

  /** @returns null = the client does not get the block */
  #partOf(block: JsonObject): ResponsePart | null {
    const tool = asObject(block['toolUse'])
    if (tool !== null) {
      return { type: 'tool_call', id: asText(tool['toolUseId']) ?? '', name: asText(tool['name']) ?? '', isFreeform: false, opaque: null }
    }
    const reasoning = asObject(block['reasoningContent'])
    if (reasoning === null) return typeof block['text'] === 'string' ? { type: 'text' } : null
    const redacted = asText(reasoning['redactedContent'])
    if (redacted === null) return { type: 'thinking' }
    return { type: 'redacted_thinking', opaque: { provider: this.#provider, value: redacted } }
  }

  #stop(event: JsonObject, out: EventOutput): void {
    this.#parts.endAll(out)
    const reason = asText(event['stopReason'])
    if (reason === null) return
    const fields = asObject(event['additionalModelResponseFields'])
    out.push({ type: 'stop', reason: STOP_REASONS.get(reason) ?? 'end', sequence: asText(fields?.['stop_sequence']), explanation: null })
  }
}

/** @param value the last event, or a whole response */
function pushEnd(value: JsonObject, out: EventOutput): void {
  const usage = readTokens(CONVERSE_USAGE, value['usage'])
  if (usage !== null) out.push({ type: 'usage', usage })
  out.push({ type: 'end' })
}

/** Tool input as JSON text: the upstream sends text in a stream, and an object in a whole response. */
function inputText(input: unknown): string {
  return asText(input) ?? (input === undefined ? '' : JSON.stringify(input))
}
