import { asList, asNumber, asObject, asText, type JsonObject } from '../neutral/json.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import { readOpenaiError } from '../neutral/dialects/openai-error.ts'
import { PartsWriter } from '../neutral/parts-writer.ts'
import { startEvent, type EventOutput, type StopReason } from '../neutral/response.ts'
import type { ResponseReader } from '../neutral/translation.ts'
import { readTokens } from '../usage/token-usage.ts'
import { readContentThinking } from './content-thinking.ts'
import { ToolCallReader } from './read-calls.ts'
import { CHAT_USAGE } from './usage.ts'

/** Fields in which servers other than OpenAI's send reasoning; `reasoning_text` is GitHub Copilot's. */
const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'] as const

/** Reads the first choice of a chat response, which is streamed or whole. */
export class ChatResponseReader implements ResponseReader {
  readonly #provider: string
  readonly #parts = new PartsWriter()
  readonly #calls = new ToolCallReader(this.#parts, out => this.#parts.endText(this.#opaque, out))
  #started = false
  #ended = false
  #hasRefusal = false
  #reasoningPlace: string | null = null

  constructor(provider: string) {
    this.#provider = provider
  }

  event(_name: string, value: unknown, out: EventOutput): void {
    const chunk = asObject(value)
    if (chunk === null) {
      // `[DONE]` is not JSON, so it arrives here as null.
      this.end(out)
      if (this.#started && !this.#ended) out.push({ type: 'end' })
      this.#ended = true
      return
    }
    if (hasError(chunk)) {
      out.push({ type: 'error', error: readOpenaiError(500, chunk) })
      return
    }
    this.#start(chunk, out)
    const choice = firstChoice(chunk)
    if (choice !== null) {
      const delta = asObject(choice['delta'])
      if (delta !== null) this.#delta(delta, out)
      this.#finish(choice, out)
    }
    // If the request lacks `include_usage`, Moonshot reports usage in the choice, and Groq reports usage in `x_groq`.
    this.#usage(chunk['usage'] ?? choice?.['usage'] ?? asObject(chunk['x_groq'])?.['usage'], out)
  }

  /** Ends the open parts. `finish_reason` does not end them, because some servers send text after it. */
  end(out: EventOutput): void {
    this.#parts.endText(this.#opaque, out)
    this.#calls.endAll(out)
  }

  body(value: JsonObject, out: EventOutput): void {
    if (hasError(value)) {
      out.push({ type: 'error', error: readOpenaiError(500, value) })
      return
    }
    const choice = firstChoice(value)
    if (choice === null) return
    this.#start(value, out)
    this.#delta(asObject(choice['message']) ?? {}, out)
    this.#finish(choice, out)
    this.end(out)
    this.#usage(value['usage'], out)
    out.push({ type: 'end' })
  }

  #start(chunk: JsonObject, out: EventOutput): void {
    if (this.#started) return
    this.#started = true
    out.push(startEvent(asText(chunk['id']), asText(chunk['model']), readTokens(CHAT_USAGE, chunk['usage'])))
  }

  /** @param delta the `delta` of a chunk, or the `message` of a whole response */
  #delta(delta: JsonObject, out: EventOutput): void {
    for (const field of REASONING_FIELDS) {
      const text = asText(delta[field])
      if (text) this.#thinking(field, text, out)
    }
    this.#content(delta['content'], out)
    const refusal = asText(delta['refusal'])
    if (refusal) {
      this.#hasRefusal = true
      this.#parts.text('refusal', refusal, this.#opaque, out)
    }
    const calls = asList(delta['tool_calls'])
    for (const [position, call] of calls.entries()) this.#calls.read(asObject(call) ?? {}, position, out)
  }

  /** @param place the field, or the type of content part, that contains the reasoning */
  #thinking(place: string, text: string, out: EventOutput): void {
    // Reads only one place: a server that sends reasoning in two places sends the same text in both.
    this.#reasoningPlace ??= place
    if (place === this.#reasoningPlace) this.#parts.text('thinking', text, this.#opaque, out)
  }

  /** Reads content, which is text, or a list of parts from some servers. */
  #content(content: unknown, out: EventOutput): void {
    if (typeof content === 'string') this.#parts.text('text', content, this.#opaque, out)
    for (const value of asList(content)) {
      const part = asObject(value) ?? {}
      const thinking = readContentThinking(part)
      if (thinking === null) this.#parts.text('text', asText(part['text']) ?? '', this.#opaque, out)
      else this.#thinking(thinking.place, thinking.text, out)
    }
  }

  /** The provider and the place of its reasoning: a later request sends the thinking back there; null = no reasoning. */
  get #opaque(): OpaqueValue | null {
    return this.#reasoningPlace === null ? null : { provider: this.#provider, value: this.#reasoningPlace }
  }

  #finish(choice: JsonObject, out: EventOutput): void {
    const reason = asText(choice['finish_reason'])
    // Some servers send an empty `finish_reason` in each chunk.
    if (!reason) return
    this.end(out)
    // vLLM reports the matched stop sequence in `stop_reason`.
    const sequence = reason === 'stop' ? asText(choice['stop_reason']) : null
    out.push({ type: 'stop', reason: this.#stopReason(reason, sequence), sequence, explanation: null })
  }

  #stopReason(reason: string, sequence: string | null): StopReason {
    switch (reason) {
      case 'length': return 'max_tokens'
      case 'content_filter': return 'content_filter'
      case 'tool_calls':
      case 'function_call': return 'tool_calls'
      default:
        // Some servers send `stop` after tool calls; clients run the tools only after `tool_calls`.
        if (this.#calls.hasCalls) return 'tool_calls'
        if (this.#hasRefusal) return 'refusal'
        return sequence === null ? 'end' : 'stop_sequence'
    }
  }

  #usage(value: unknown, out: EventOutput): void {
    const usage = readTokens(CHAT_USAGE, value)
    if (usage !== null) out.push({ type: 'usage', usage })
  }
}

/** OpenRouter reports an error inside the choice if the response has begun. */
function hasError(value: JsonObject): boolean {
  return (value['error'] ?? firstChoice(value)?.['error'] ?? null) !== null
}

function firstChoice(value: JsonObject): JsonObject | null {
  const choices = asList(value['choices'])
  return asObject(choices.find(choice => (asNumber(asObject(choice)?.['index']) ?? 0) === 0))
}
