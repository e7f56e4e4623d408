import { asList, asNumber, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import { readOpenaiError } from '../neutral/openai-error.ts'
import { PartsWriter } from '../neutral/parts-writer.ts'
import { startEvent } from '../neutral/response.ts'
import type { ResponseEvent, StopReason } from '../neutral/response.ts'
import type { ResponseReader } from '../neutral/translation.ts'
import { readTokens } from '../shared/token-usage.ts'
import { ArgumentsScan } from './arguments-scan.ts'
import { CHAT_USAGE } from './usage.ts'

/** Servers that are not OpenAI's send their reasoning in a field of their own. */
const REASONING_FIELDS = ['reasoning_content', 'reasoning'] as const

interface OpenCall {
  readonly index: number
  readonly id: string
  readonly arguments: ArgumentsScan
}

/** Reads a chat response: chunks, or a whole one. Of several choices it reads the first. */
export class ChatResponseReader implements ResponseReader {
  readonly #provider: string
  readonly #parts = new PartsWriter()
  /** By the number that the upstream gives them. */
  readonly #calls = new Map<number, OpenCall>()
  /** The numbers of those whose arguments are whole. */
  readonly #whole = new Set<number>()
  #started = false
  #ended = false
  #hasCalls = false
  #hasRefusal = false
  #reasoningField: string | null = null

  constructor(provider: string) {
    this.#provider = provider
  }

  event(_name: string, value: unknown, out: ResponseEvent[]): void {
    const chunk = asObject(value)
    if (chunk === null) {
      // `[DONE]`, which is no JSON.
      if (this.#started && !this.#ended) out.push({ type: 'end' })
      this.#ended = true
      return
    }
    if (asObject(chunk['error']) !== null) {
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
    // Moonshot tells it in the choice, and Groq in an object of its own, unless they were asked.
    this.#usage(chunk['usage'] ?? choice?.['usage'] ?? asObject(chunk['x_groq'])?.['usage'], out)
  }

  body(value: JsonObject, out: ResponseEvent[]): void {
    if (asObject(value['error']) !== null) {
      out.push({ type: 'error', error: readOpenaiError(500, value) })
      return
    }
    const choice = firstChoice(value)
    if (choice === null) return
    this.#start(value, out)
    this.#delta(asObject(choice['message']) ?? {}, out)
    this.#finish({ ...choice, finish_reason: choice['finish_reason'] ?? 'stop' }, out)
    this.#usage(value['usage'], out)
    out.push({ type: 'end' })
  }

  #start(chunk: JsonObject, out: ResponseEvent[]): void {
    if (this.#started) return
    this.#started = true
    out.push(startEvent(asText(chunk['id']) || null, asText(chunk['model']) || null, readTokens(CHAT_USAGE, chunk['usage'])))
  }

  /** @param delta of a chunk, or the message of a whole response */
  #delta(delta: JsonObject, out: ResponseEvent[]): void {
    for (const field of REASONING_FIELDS) {
      const text = asText(delta[field])
      if (!text) continue
      // A server that sends both says the same twice.
      this.#reasoningField ??= field
      if (field === this.#reasoningField) this.#parts.text('thinking', text, this.#opaque, out)
    }
    const content = contentText(delta['content'])
    if (content !== '') this.#parts.text('text', content, this.#opaque, out)
    const refusal = asText(delta['refusal'])
    if (refusal) {
      this.#hasRefusal = true
      this.#parts.text('refusal', refusal, this.#opaque, out)
    }
    const calls = asList(delta['tool_calls'])
    for (const [position, call] of calls.entries()) this.#toolCall(asObject(call) ?? {}, position, out)
  }

  /** Marks thinking as this upstream's: it gets it back in the field in which it came. */
  get #opaque(): OpaqueValue | null {
    return this.#reasoningField === null ? null : { provider: this.#provider, value: this.#reasoningField }
  }

  #toolCall(call: JsonObject, position: number, out: ResponseEvent[]): void {
    const content = asObject(call['function']) ?? {}
    const text = argumentsText(content['arguments'])
    const key = asNumber(call['index']) ?? position
    const id = asText(call['id']) ?? ''
    const name = asText(content['name']) ?? ''
    const open = this.#calls.get(key)
    // Some servers give all parallel calls one index: another id is another call, and so is more behind whole arguments.
    const isNew = open === undefined || (name !== '' && ((id !== '' && id !== open.id) || (open.arguments.isWhole && text.trim() !== '')))
    if (isNew) this.#startCall(key, { id, name }, out)
    const current = this.#calls.get(key)
    if (current === undefined) return
    current.arguments.add(text)
    if (current.arguments.isWhole) this.#whole.add(key)
    this.#parts.delta(current.index, text, out)
  }

  #startCall(key: number, call: { readonly id: string, readonly name: string }, out: ResponseEvent[]): void {
    this.#parts.endText(this.#opaque, out)
    // A call whose arguments are whole has ended, although chat says so of all at the end alone.
    for (const ended of this.#whole.add(key)) {
      const open = this.#calls.get(ended)
      if (open !== undefined) this.#parts.end(open.index, null, out)
      this.#calls.delete(ended)
    }
    this.#whole.clear()
    this.#hasCalls = true
    const index = this.#parts.start({ type: 'tool_call', ...call, isFreeform: false, opaque: null }, out)
    this.#calls.set(key, { index, id: call.id, arguments: new ArgumentsScan() })
  }

  #finish(choice: JsonObject, out: ResponseEvent[]): void {
    const reason = asText(choice['finish_reason'])
    if (reason === null) return
    this.#parts.endText(this.#opaque, out)
    for (const { index } of this.#calls.values()) this.#parts.end(index, null, out)
    this.#calls.clear()
    this.#whole.clear()
    // vLLM names the sequence that was met.
    const sequence = reason === 'stop' ? asText(choice['stop_reason']) : null
    out.push({ type: 'stop', reason: this.#stopReason(reason, sequence), sequence, explanation: null })
  }

  #stopReason(reason: string, sequence: string | null): StopReason {
    switch (reason) {
      case 'length':
        return 'max_tokens'
      case 'content_filter':
        return 'content_filter'
      case 'tool_calls':
      case 'function_call':
        return 'tool_calls'
      default:
        // Some servers say `stop` after calls too, and clients then do not run the tools.
        if (this.#hasCalls) return 'tool_calls'
        if (this.#hasRefusal) return 'refusal'
        return sequence === null ? 'end' : 'stop_sequence'
    }
  }

  #usage(value: unknown, out: ResponseEvent[]): void {
    const usage = readTokens(CHAT_USAGE, value)
    if (usage !== null) out.push({ type: 'usage', usage })
  }
}

function firstChoice(value: JsonObject): JsonObject | null {
  const choices = asList(value['choices'])
  return asObject(choices.find(choice => (asNumber(asObject(choice)?.['index']) ?? 0) === 0))
}

/** Text, or a list of text parts, as some servers send it. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return asList(content).map(part => asText(asObject(part)?.['text']) ?? '').join('')
}

/** Some servers send an object instead of its text. */
function argumentsText(value: unknown): string {
  return typeof value === 'string' ? value : asObject(value) === null ? '' : JSON.stringify(value)
}
