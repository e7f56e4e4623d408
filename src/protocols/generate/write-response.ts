import type { CapsuleKeys } from '../../base/secrets/capsule-keys.ts'
import { seal, type CarriedThinking } from '../neutral/capsule.ts'
import { argumentsObject, withoutNulls, type JsonObject } from '../neutral/json.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import { NO_USAGE, isReported } from '../neutral/response.ts'
import type { NeutralError, NeutralResponse, ResponseEvent, ResponsePart, StopEvent, StopReason, TokenUsage } from '../neutral/response.ts'
import { ThinkingCarrier } from '../neutral/thinking-carrier.ts'
import type { ClientContext, ResponseWriter } from '../neutral/translation.ts'
import { statusName } from './errors.ts'

const FINISH_REASONS: Readonly<Record<StopReason, string>> = {
  end: 'STOP', max_tokens: 'MAX_TOKENS', context_window: 'MAX_TOKENS', stop_sequence: 'STOP', tool_calls: 'STOP',
  refusal: 'SAFETY', content_filter: 'SAFETY', pause: 'STOP',
}

/** Maximum characters of arguments to hold until a call is complete: the protocol cannot send parts of a call. */
const MAX_HELD = 16 * 1024 * 1024

interface OpenPart {
  readonly part: ResponsePart
  text: string
}

/** Writes the chunks of a streamed response, as server-sent events or as elements of one JSON array. */
export class GenerateResponseWriter implements ResponseWriter {
  readonly #context: ClientContext
  readonly #thinking = new ThinkingCarrier()
  readonly #open = new Map<number, OpenPart>()
  #head: JsonObject = {}
  #held = 0
  #hasWritten = false
  #stop: StopEvent | null = null
  #usage: TokenUsage = NO_USAGE

  constructor(context: ClientContext) {
    this.#context = context
  }

  write(event: ResponseEvent): string {
    this.#thinking.follow(event)
    switch (event.type) {
      case 'start':
        this.#head = head(event.id, event.model, this.#context)
        this.#usage = event.usage ?? NO_USAGE
        return ''
      case 'part_start':
        this.#open.set(event.index, { part: event.part, text: '' })
        return ''
      case 'delta': return this.#delta(event.index, event.text)
      case 'part_end': return this.#end(event.index)
      case 'stop':
        this.#stop = event
        return ''
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'end':
        return this.#stop === null ? '' : this.#last(this.#stop) + (this.#context.isEventStream ? '' : ']')
      case 'error':
        return this.#element(writeGenerateError(event.error)) + (this.#context.isEventStream ? '' : ']')
      case 'ping': return ''
    }
  }

  #delta(index: number, text: string): string {
    const open = this.#open.get(index)
    switch (open?.part.type) {
      case 'text':
      case 'refusal': return this.#parts([{ text }])
      case 'thinking': return this.#parts([{ text, thought: true }])
      case 'tool_call':
        this.#held += text.length
        if (this.#held > MAX_HELD) throw new Error('the arguments of the tool calls are too long')
        open.text += text
        return ''
      default: return ''
    }
  }

  #end(index: number): string {
    const open = this.#open.get(index)
    this.#open.delete(index)
    if (open === undefined) return ''
    this.#held -= open.text.length
    const parts = writePart(open.part, open.text, this.#thinking, this.#context.capsuleKeys)
    return parts.length === 0 ? '' : this.#parts(parts)
  }

  #last(stop: StopEvent): string {
    const parts = carried(this.#thinking.take(), this.#context.capsuleKeys)
    return this.#element({
      candidates: [{ content: { role: 'model', parts: parts.length === 0 ? [{ text: '' }] : parts }, ...writeStop(stop), index: 0 }],
      ...writeUsage(this.#usage), ...this.#head,
    })
  }

  #parts(parts: readonly JsonObject[]): string {
    return this.#element({ candidates: [{ content: { role: 'model', parts }, index: 0 }], ...this.#head })
  }

  #element(value: JsonObject): string {
    const json = JSON.stringify(value)
    if (this.#context.isEventStream) return `data: ${json}\n\n`
    const before = this.#hasWritten ? ',\n' : '['
    this.#hasWritten = true
    return before + json
  }
}

const NO_STOP: StopEvent = { type: 'stop', reason: 'end', sequence: null, explanation: null }

export function writeGenerateBody(response: NeutralResponse, context: ClientContext): JsonObject {
  const thinking = new ThinkingCarrier()
  const parts = response.parts.flatMap(({ part, text, opaque }): JsonObject[] => {
    if (part.type === 'thinking' || part.type === 'redacted_thinking') thinking.add(part, text, opaque)
    if (part.type === 'text' || part.type === 'refusal') return text === '' ? [] : [{ text }]
    if (part.type === 'thinking') return text === '' ? [] : [{ text, thought: true }]
    return writePart(part, text, thinking, context.capsuleKeys)
  })
  const all = [...parts, ...carried(thinking.take(), context.capsuleKeys)]
  return {
    candidates: [{ content: { role: 'model', parts: all }, ...writeStop(response.stop ?? NO_STOP), index: 0 }],
    ...writeUsage(response.usage ?? NO_USAGE),
    ...head(response.id, response.model, context),
  }
}

export function writeGenerateError({ status, message, code }: NeutralError): JsonObject {
  const details = code === null ? {} : {
    details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: code.toUpperCase(), domain: 'model-gateway' }],
  }
  return { error: { code: status, message, status: statusName(status), ...details } }
}

function writePart(part: ResponsePart, text: string, thinking: ThinkingCarrier, keys: CapsuleKeys): JsonObject[] {
  switch (part.type) {
    case 'tool_call': {
      const call = withoutNulls({ id: part.id === '' ? null : part.id, name: part.name, args: argumentsObject(text) })
      return [withoutNulls({ functionCall: call, thoughtSignature: sealed(part.opaque, thinking.take(), keys) })]
    }
    case 'image':
    case 'audio': return [{ inlineData: { mimeType: part.mediaType, data: part.data } }]
    default: return []
  }
}

/** Writes thinking that no call follows as a separate part. */
function carried(thinking: readonly CarriedThinking[], keys: CapsuleKeys): JsonObject[] {
  const thoughtSignature = sealed(null, thinking, keys)
  return thoughtSignature === null ? [] : [{ text: '', thoughtSignature }]
}

/** Seals the opaque value, and the thinking before it, in a signature, because clients send signatures back unchanged. */
function sealed(opaque: OpaqueValue | null, thinking: readonly CarriedThinking[], keys: CapsuleKeys): string | null {
  return opaque === null && thinking.length === 0 ? null : seal(keys, 'opaque_value', { id: null, opaque, thinking })
}

function head(id: string | null, model: string | null, context: ClientContext): JsonObject {
  return { modelVersion: model ?? context.model, responseId: id ?? context.uniqueId }
}

function writeStop({ reason, explanation }: StopEvent): JsonObject {
  return withoutNulls({ finishReason: FINISH_REASONS[reason], finishMessage: explanation })
}

/** In Google's usage, `candidatesTokenCount` excludes thoughts. */
function writeUsage(usage: TokenUsage): JsonObject {
  if (!isReported(usage)) return {}
  const { input, cachedInput, output, reasoning } = usage
  return {
    usageMetadata: {
      promptTokenCount: input ?? 0,
      ...withoutNulls({ cachedContentTokenCount: cachedInput, thoughtsTokenCount: reasoning }),
      candidatesTokenCount: Math.max(0, (output ?? 0) - (reasoning ?? 0)),
      totalTokenCount: (input ?? 0) + (output ?? 0),
    },
  }
}
