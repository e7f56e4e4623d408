import type { JsonObject } from '../neutral/json.ts'
import type { Conversation, InputEstimate } from '../endpoint/protocol.ts'
import type { ReportedUsage } from '../usage/reported-usage.ts'
import { MEDIA_TOKENS } from '../request/request-estimate.ts'
import { tokensOfBytes } from '../usage/tokens-of-bytes.ts'
import { InputTranscripts } from './input-transcripts.ts'
import { countIn, eventIn, objectIn, objectOf, settingsIn } from './realtime-event.ts'

/** Source: OpenAI's guide "Managing costs": 1 token for 100 ms of what the user says. */
const MS_PER_TOKEN = 100
/** Bytes of a message that is parsed; an item that is longer is a picture. */
const MAX_PARSED_BYTES = 256 * 1024

const ITEMS = new Set(['conversation.item.created', 'conversation.item.added'])

/**
 * What the next response of a realtime session is going to read, for one that breaks off before it
 * has told: what the one before it read and said, which the upstream has cached, and what came since.
 * All of that the upstream tells of, but for sound that the client commits by itself, and for the
 * instructions, the tools and the input that a single `response.create` has of its own.
 *
 * Source: OpenAI's API reference, "Realtime", server events.
 */
export class RealtimeConversation implements Conversation {
  readonly #transcripts = new InputTranscripts()
  /** Tokens of instructions and tools, until a response has told what it read. */
  #settingsTokens = 0
  #cachedTokens = 0
  #textTokens = 0
  #audioTokens = 0
  /** Milliseconds of the session's sound at which the client began to speak; null = it does not. */
  #speechStartMs: number | null = null
  /** An item may be reported twice, under its two names. */
  #lastItemId: unknown = null

  /** null = the upstream has reported nothing. */
  get inputEstimate(): InputEstimate | null {
    const inputTokens = (this.#cachedTokens || this.#settingsTokens) + this.#textTokens + this.#audioTokens
    if (inputTokens === 0) return null
    return { inputTokens, cachedInputTokens: this.#cachedTokens || null, inputAudioTokens: this.#audioTokens || null }
  }

  get transcriptionModel(): string | null {
    return this.#transcripts.model
  }

  onMessage(type: string, message: Buffer): ReportedUsage | null {
    const settings = settingsIn(type, message)
    if (settings !== null) {
      this.#transcripts.applySettings(settings)
      this.applySettings(settings)
      return null
    }
    const transcript = this.#transcripts.read(type, message)
    this.onEvent(type, message)
    return transcript
  }

  /** The session has these settings from now on. */
  applySettings({ instructions, tools }: JsonObject): void {
    const listed = Array.isArray(tools) && tools.length > 0 ? JSON.stringify(tools) : null
    this.#settingsTokens = tokensOf(instructions) + tokensOf(listed)
  }

  /** Takes the next of the upstream's messages, other than its settings. */
  onEvent(type: string, message: Buffer): void {
    if (message.length > MAX_PARSED_BYTES) {
      if (ITEMS.has(type)) this.#textTokens += MEDIA_TOKENS
      return
    }
    if (ITEMS.has(type)) this.#addItem(objectIn(eventIn(message), 'item'))
    switch (type) {
      case 'input_audio_buffer.speech_started':
        this.#speechStartMs = countIn(eventIn(message), 'audio_start_ms')
        break
      case 'input_audio_buffer.speech_stopped':
        this.#addSpeech(countIn(eventIn(message), 'audio_end_ms'))
        break
      case 'response.done':
        this.#addResponse(objectIn(eventIn(message), 'response'))
    }
  }

  #addItem(item: JsonObject): void {
    const { id = null, role, type, content, output } = item
    // What the model says is in the figures of its response.
    if (role === 'assistant' || type === 'function_call' || (id !== null && id === this.#lastItemId)) return
    this.#lastItemId = id
    this.#textTokens += tokensOf(output)
    for (const part of Array.isArray(content) ? content : []) {
      const { type, text } = objectOf(part)
      this.#textTokens += type === 'input_image' ? MEDIA_TOKENS : tokensOf(text)
    }
  }

  #addSpeech(end: number | null): void {
    if (this.#speechStartMs !== null && end !== null) {
      this.#audioTokens += Math.ceil(Math.max(0, end - this.#speechStartMs) / MS_PER_TOKEN)
    }
    this.#speechStartMs = null
  }

  #addResponse(response: JsonObject): void {
    const usage = objectIn(response, 'usage')
    const [read, said] = [countIn(usage, 'input_tokens'), countIn(usage, 'output_tokens')]
    // One that was made beside the conversation has no part in it.
    if (read === null || said === null || response['conversation_id'] === null) return
    this.#cachedTokens = read + said
    this.#textTokens = this.#audioTokens = 0
  }
}

function tokensOf(text: unknown): number {
  return typeof text === 'string' ? tokensOfBytes(Buffer.byteLength(text)) : 0
}
