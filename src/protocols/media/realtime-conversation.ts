import type { JsonObject } from '../neutral/json.ts'
import type { Conversation, InputEstimate } from '../endpoint/protocol.ts'
import type { ReportedUsage } from '../usage/reported-usage.ts'
import { MEDIA_TOKENS } from '../request/request-estimate.ts'
import { tokensOfBytes } from '../usage/tokens-of-bytes.ts'
import { InputTranscripts } from './input-transcripts.ts'
import { countIn, eventIn, objectIn, objectOf, settingsIn } from './realtime-event.ts'

/** Milliseconds of the user's speech for each token. Source: OpenAI's guide "Managing costs". */
const MS_PER_TOKEN = 100
/** Larger messages are not parsed. If such a message is an item, the item is an image. */
const MAX_PARSED_BYTES = 256 * 1024

const ITEMS = new Set(['conversation.item.created', 'conversation.item.added'])

/**
 * Estimates the input of the next response of a realtime session, in case the session breaks before the response reports usage. The
 * estimate is the input and output of the previous response, which the upstream has cached, and all later items. The estimate lacks what
 * the upstream does not report: audio that the client commits itself, and the instructions, tools and input of a single `response.create`.
 * Source: OpenAI's API reference, "Realtime", server events.
 */
export class RealtimeConversation implements Conversation {
  readonly #transcripts = new InputTranscripts()
  /** Tokens of instructions and tools; used until a response reports its input. */
  #settingsTokens = 0
  #cachedTokens = 0
  #textTokens = 0
  #audioTokens = 0
  /** Position in the session's audio, in ms, at which the client began to speak; null = the client does not speak. */
  #speechStartMs: number | null = null
  /** The id of the last item: the upstream may report one item twice, under two event names. */
  #lastItemId: unknown = null

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

  applySettings({ instructions, tools }: JsonObject): void {
    const listed = Array.isArray(tools) && tools.length > 0 ? JSON.stringify(tools) : null
    this.#settingsTokens = tokensOf(instructions) + tokensOf(listed)
  }

  /** Reads a message of the upstream that is not settings. */
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
    // Output of the model is skipped, because the usage of a response includes its output.
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
    // A response outside the conversation is not input of the next response.
    if (read === null || said === null || response['conversation_id'] === null) return
    this.#cachedTokens = read + said
    this.#textTokens = this.#audioTokens = 0
  }
}

function tokensOf(text: unknown): number {
  return typeof text === 'string' ? tokensOfBytes(Buffer.byteLength(text)) : 0
}
