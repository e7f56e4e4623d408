import { errorKindOf } from '../neutral/errors.ts'
import { asList, asNumber, asObject, asText, type JsonObject } from '../neutral/json.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import { PartsWriter } from '../neutral/parts-writer.ts'
import { startEvent, type NeutralError, type EventOutput, type StopReason } from '../neutral/response.ts'
import type { ResponseReader } from '../neutral/translation.ts'
import { errorIn } from '../neutral/error-body.ts'
import { readTokens } from '../usage/token-usage.ts'
import { GENERATE_USAGE } from './usage.ts'

const STOP_REASONS: ReadonlyMap<string, StopReason> = new Map(Object.entries({
  MAX_TOKENS: 'max_tokens', SAFETY: 'content_filter', RECITATION: 'content_filter', BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter', SPII: 'content_filter', LANGUAGE: 'content_filter', IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter', IMAGE_RECITATION: 'content_filter', MODEL_ARMOR: 'content_filter',
}))

/**
 * Finish reasons by number, for `enum-encoding=int` (google/ai/generativelanguage/v1beta/generative_service.proto). From 6 on, Vertex AI's
 * numbers stand for other reasons, but those reasons also mean a response without content.
 */
const FINISH_REASONS = [
  'FINISH_REASON_UNSPECIFIED', 'STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'OTHER', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII',
  'MALFORMED_FUNCTION_CALL', 'IMAGE_SAFETY', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_OTHER',
  'NO_IMAGE', 'IMAGE_RECITATION', 'MISSING_THOUGHT_SIGNATURE',
] as const

/**
 * Reads the first candidate of a streamed or whole response. Reports the stop at the end, because servers may send the reason in each
 * chunk.
 */
export class GenerateResponseReader implements ResponseReader {
  readonly #provider: string
  readonly #parts = new PartsWriter()
  #started = false
  #isOver = false
  #hasCalls = false
  #hasContent = false
  #finishReason: string | null = null
  #explanation: string | null = null
  #usage: JsonObject | null = null
  /** The signature of the thoughts in the open part. */
  #thoughtSignature: OpaqueValue | null = null

  constructor(provider: string) {
    this.#provider = provider
  }

  event(_name: string, value: unknown, out: EventOutput): void {
    const chunk = asObject(value)
    if (chunk === null || this.#isOver) return
    if (asObject(chunk['error']) !== null) {
      this.#isOver = true
      out.push({ type: 'error', error: readGenerateError(500, chunk) })
      return
    }
    this.#usage = asObject(chunk['usageMetadata']) ?? this.#usage
    this.#start(chunk, out)
    const candidates = asList(chunk['candidates']).map(candidate => asObject(candidate) ?? {})
    const candidate = candidates.find(({ index }) => (asNumber(index) ?? 0) === 0)
    for (const part of asList(asObject(candidate?.['content'])?.['parts'])) this.#part(asObject(part) ?? {}, out)
    this.#finishReason = enumName(candidate?.['finishReason'], FINISH_REASONS) ?? this.#finishReason
    this.#explanation = asText(candidate?.['finishMessage']) ?? this.#explanation
    const feedback = asObject(chunk['promptFeedback'])
    const blocked = enumName(feedback?.['blockReason'], BLOCK_REASONS)
    if (blocked !== null && blocked !== BLOCK_REASONS[0]) {
      this.#finishReason = 'PROHIBITED_CONTENT'
      this.#explanation = asText(feedback?.['blockReasonMessage']) ?? `The prompt was blocked: ${blocked}.`
    }
  }

  end(out: EventOutput): void {
    if (!this.#started || this.#isOver) return
    this.#isOver = true
    this.#parts.endText(this.#thoughtSignature, out)
    const given = this.#finishReason
    if (given !== null && given !== FINISH_REASONS[0]) out.push({ type: 'stop', reason: this.#stopReason(given), sequence: null, explanation: this.#explanation })
    const usage = readTokens(GENERATE_USAGE, this.#usage)
    if (usage !== null) out.push({ type: 'usage', usage })
  }

  /** A reason that is not known is a refusal if the response has no content. */
  #stopReason(given: string): StopReason {
    const known = STOP_REASONS.get(given)
    if (known !== undefined) return known
    if (this.#hasCalls) return 'tool_calls'
    if (given === 'STOP' || this.#hasContent) return 'end'
    this.#explanation ??= `The model ended the response: ${given}.`
    return 'content_filter'
  }

  body(value: JsonObject, out: EventOutput): void {
    const isResponse = ['candidates', 'promptFeedback', 'error'].some(name => name in value)
    if (!isResponse) return
    this.event('', value, out)
    if (this.#isOver) return
    this.end(out)
    out.push({ type: 'end' })
  }

  #start(chunk: JsonObject, out: EventOutput): void {
    if (this.#started) return
    this.#started = true
    out.push(startEvent(asText(chunk['responseId']), asText(chunk['modelVersion']), readTokens(GENERATE_USAGE, this.#usage, false)))
  }

  #part(part: JsonObject, out: EventOutput): void {
    const signature = asText(part['thoughtSignature'] ?? null)
    const opaque: OpaqueValue | null = signature ? { provider: this.#provider, value: signature } : null
    const call = asObject(part['functionCall'])
    if (call !== null) return this.#call(call, opaque, out)
    const text = asText(part['text']) ?? codeText(part)
    if (part['thought'] === true) {
      this.#parts.text('thinking', text, this.#thoughtSignature, out)
      this.#thoughtSignature = opaque
      return
    }
    if (text !== '') {
      this.#hasContent = true
      this.#parts.text('text', text, this.#thoughtSignature, out)
      this.#thoughtSignature = null
    }
    const media = asObject(part['inlineData'])
    if (media !== null) this.#media(media, out)
    // The signature may arrive after the text, in a separate part.
    if (opaque !== null) this.#whole({ type: 'redacted_thinking', opaque }, '', out)
  }

  #call(call: JsonObject, opaque: OpaqueValue | null, out: EventOutput): void {
    this.#hasCalls = true
    const id = asText(call['id']) ?? ''
    const name = asText(call['name']) ?? ''
    this.#whole({ type: 'tool_call', id, name, isFreeform: false, opaque }, JSON.stringify(call['args'] ?? {}), out)
  }

  #media(media: JsonObject, out: EventOutput): void {
    this.#hasContent = true
    const mediaType = asText(media['mimeType']) ?? 'application/octet-stream'
    const type = mediaType.startsWith('audio/') ? 'audio' : 'image'
    this.#whole({ type, mediaType, data: asText(media['data']) ?? '' }, '', out)
  }

  #whole(part: Parameters<PartsWriter['start']>[0], text: string, out: EventOutput): void {
    this.#parts.endText(this.#thoughtSignature, out)
    this.#thoughtSignature = null
    const index = this.#parts.start(part, out)
    this.#parts.delta(index, text, out)
    this.#parts.end(index, null, out)
  }
}

const BLOCK_REASONS = ['BLOCK_REASON_UNSPECIFIED', 'SAFETY', 'OTHER', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'IMAGE_SAFETY'] as const

/** The name of an enum's value. The value may be a name or a number. */
function enumName(value: unknown, names: readonly string[]): string | null {
  const number = asNumber(value)
  return number === null ? asText(value) : names[number] ?? `UNKNOWN_${number}`
}

/** The code that the provider ran, or the output of that code. */
function codeText(part: JsonObject): string {
  return asText(asObject(part['executableCode'])?.['code']) ?? asText(asObject(part['codeExecutionResult'])?.['output']) ?? ''
}

/** Reads an error of the form `{error: {code, message, status}}`, or a list that contains such an error. */
export function readGenerateError(status: number, body: unknown): NeutralError {
  const error = errorIn(body) ?? {}
  const given = asNumber(error['code'])
  const actual = given !== null && given >= 400 && given < 600 ? given : status
  const code = asText(error['status']) || null
  const message = asText(error['message']) ?? `the upstream responded with the status ${status}`
  return { kind: errorKindOf(actual, null), status: actual, message, code, param: null }
}
