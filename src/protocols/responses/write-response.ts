import { GatewayError, overloaded } from '../../base/errors.ts'
import { MemoryReservation } from '../../base/memory-reservation.ts'
import type { CapsuleKeys } from '../../base/secrets/capsule-keys.ts'
import { seal, type CarriedThinking } from '../neutral/capsule.ts'
import { withoutNulls, type JsonObject } from '../neutral/json.ts'
import { writeOpenaiError } from '../neutral/dialects/openai-error.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import type { Tool } from '../neutral/request.ts'
import { NO_USAGE, isReported } from '../neutral/response.ts'
import type { NeutralResponse, PartEndEvent, PartStartEvent, ResponseEvent, ResponsePart, StopEvent, StopReason, TokenUsage } from '../neutral/response.ts'
import { fittingToolId } from '../neutral/tool-ids.ts'
import type { ClientContext, ResponseWriter } from '../neutral/translation.ts'
import { argumentsOf, contentOf, itemOf, prefixOf, summaryOf, type OpenItem } from './output-items.ts'

const CALL_IDS = { pattern: /^[\x21-\x7e]+$/, maxLength: 64, prefix: 'call_' }
/** Maximum characters of a response. The writer keeps the whole response, because the last event repeats all content. */
const MAX_KEPT = 32 * 1024 * 1024

/** Why a response is incomplete, by stop reason. For reasons that are absent, the response is complete. */
const INCOMPLETE: Partial<Readonly<Record<StopReason, string>>> = {
  max_tokens: 'max_output_tokens', context_window: 'max_output_tokens', content_filter: 'content_filter',
}

/** @param members at least one member; `type` and `sequence_number` are added */
type EncodeEvent = (type: string, sequenceNumber: number, members: JsonObject) => string

function eventText(type: string, sequenceNumber: number, members: JsonObject): string {
  return `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequenceNumber},${JSON.stringify(members).slice(1)}\n\n`
}

/** Writes the events of a streamed response, with each part as a separate item. */
export class ResponsesResponseWriter implements ResponseWriter {
  readonly #context: ClientContext
  readonly #encode: EncodeEvent
  readonly #open = new Map<number, OpenItem>()
  readonly #output: JsonObject[] = []
  readonly #tools: ReadonlyMap<string, Tool>
  #head: JsonObject = {}
  #sequence = 0
  #items = 0
  #kept = 0
  readonly #memory: MemoryReservation
  #hasRefusal = false
  #usage: TokenUsage = NO_USAGE
  #stop: StopEvent | null = null

  constructor(context: ClientContext, encode: EncodeEvent = eventText) {
    this.#context = context
    this.#encode = encode
    this.#memory = new MemoryReservation(context.reserveMemory)
    this.#tools = new Map(context.request.tools.map(tool => [tool.name, tool]))
  }

  write(event: ResponseEvent): string {
    switch (event.type) {
      case 'start': {
        this.#head = head(event.id, event.model, this.#context)
        const response = { ...this.#head, status: 'in_progress', output: [], usage: null }
        return this.#event('response.created', { response }) + this.#event('response.in_progress', { response })
      }
      case 'part_start': return this.#start(event)
      case 'delta': return this.#delta(event.index, event.text)
      case 'part_end': return this.#end(event)
      case 'stop':
        this.#stop = event
        return ''
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'end': return this.#finish()
      case 'error': {
        const error = writeOpenaiError(event.error)['error'] as JsonObject
        return this.#event('error', { code: error['code'], message: error['message'], param: error['param'], error })
      }
      case 'ping': return ''
    }
  }

  #start({ index, part }: PartStartEvent): string {
    if (part.type === 'image' || part.type === 'audio') return ''
    if (part.type === 'redacted_thinking') return this.#reasoning([{ text: null, opaque: part.opaque }])
    const callId = part.type === 'tool_call' ? callIdOf(part, `${this.#context.uniqueId}${this.#items}`) : ''
    // A call has no field for an opaque value, so a reasoning item before the call contains the value.
    const before = part.type === 'tool_call' && part.opaque !== null ? this.#reasoning([], { id: callId, opaque: part.opaque }) : ''
    const item = this.#add(part, callId)
    this.#open.set(index, item)
    const added = this.#event('response.output_item.added', { output_index: item.outputIndex, item: itemOf(item, 'in_progress', null) })
    const hasContent = part.type === 'text' || part.type === 'refusal'
    return before + added + (hasContent ? this.#partEvent('response.content_part.added', item, { part: contentOf(item) }) : '')
  }

  #add(part: ResponsePart, callId: string): OpenItem {
    const outputIndex = this.#items++
    return { outputIndex, id: `${prefixOf(part)}${this.#context.uniqueId}${outputIndex}`, part, ...this.#callOf(part), callId, text: '' }
  }

  #callOf(part: ResponsePart): Pick<OpenItem, 'callType' | 'tool'> {
    if (part.type !== 'tool_call') return { callType: 'function_call', tool: {} }
    const { name, isFreeform } = part
    const tool = this.#tools.get(name)
    if (tool?.isToolSearch) return { callType: 'tool_search_call', tool: { execution: 'client' } }
    return { callType: isFreeform ? 'custom_tool_call' : 'function_call', tool: { ...tool?.namespaced ?? { name } } }
  }

  /** Writes a reasoning item without visible content. */
  #reasoning(thinking: readonly CarriedThinking[], call: { readonly id: string, readonly opaque: OpaqueValue } | null = null): string {
    const item = this.#add({ type: 'thinking' }, '')
    const encrypted = seal(this.#context.capsuleKeys, 'opaque_value', { id: call?.id ?? null, opaque: call?.opaque ?? null, thinking })
    const done = itemOf(item, 'completed', encrypted)
    const { outputIndex } = item
    this.#output[outputIndex] = done
    return this.#event('response.output_item.added', { output_index: outputIndex, item: itemOf(item, 'in_progress', null) })
      + this.#event('response.output_item.done', { output_index: outputIndex, item: done })
  }

  #delta(index: number, text: string): string {
    const item = this.#open.get(index)
    if (item === undefined) return ''
    const isFirst = item.text === ''
    item.text += text
    this.#kept += text.length
    if (this.#kept > MAX_KEPT) {
      throw new GatewayError('answer_too_large', `the response is larger than the ${MAX_KEPT >> 20} MB that can be held`)
    }
    if (!this.#memory.resize(this.#kept)) {
      throw overloaded('the bodies of running requests and the responses that are kept use all of server.body_memory')
    }
    switch (item.part.type) {
      case 'text': return this.#partEvent('response.output_text.delta', item, { delta: text, logprobs: [] })
      case 'refusal':
        this.#hasRefusal = true
        return this.#partEvent('response.refusal.delta', item, { delta: text })
      case 'thinking': {
        const added = isFirst ? this.#summaryEvent('response.reasoning_summary_part.added', item, { part: summaryOf('') }) : ''
        return added + this.#summaryEvent('response.reasoning_summary_text.delta', item, { delta: text })
      }
      case 'tool_call': {
        if (item.callType === 'tool_search_call') return ''
        const name = item.part.isFreeform ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta'
        return this.#itemEvent(name, item, { delta: text })
      }
      default: return ''
    }
  }

  #end({ index, opaque }: PartEndEvent): string {
    const item = this.#open.get(index)
    if (item === undefined) return ''
    this.#open.delete(index)
    const done = itemOf(item, 'completed', encryptedOf(item, opaque, this.#context.capsuleKeys))
    this.#output[item.outputIndex] = done
    return this.#contentDone(item) + this.#event('response.output_item.done', { output_index: item.outputIndex, item: done })
  }

  #contentDone(item: OpenItem): string {
    const { part, text } = item
    switch (part.type) {
      case 'text':
        return this.#partEvent('response.output_text.done', item, { text, logprobs: [] })
          + this.#partEvent('response.content_part.done', item, { part: contentOf(item) })
      case 'refusal':
        return this.#partEvent('response.refusal.done', item, { refusal: text })
          + this.#partEvent('response.content_part.done', item, { part: contentOf(item) })
      case 'thinking':
        if (text === '') return ''
        return this.#summaryEvent('response.reasoning_summary_text.done', item, { text })
          + this.#summaryEvent('response.reasoning_summary_part.done', item, { part: summaryOf(text) })
      case 'tool_call':
        if (item.callType === 'tool_search_call') return ''
        return part.isFreeform
          ? this.#itemEvent('response.custom_tool_call_input.done', item, { input: text })
          : this.#itemEvent('response.function_call_arguments.done', item, { ...item.tool, arguments: argumentsOf(text) })
      default: return ''
    }
  }

  #finish(): string {
    if (this.#stop === null) return ''
    const refusal = this.#refusal(this.#stop)
    const response = { ...this.#head, ...outcomeOf(this.#stop, this.#hasRefusal), output: this.#output, usage: writeUsage(this.#usage) }
    return refusal + this.#event(response.status === 'incomplete' ? 'response.incomplete' : 'response.completed', { response })
  }

  /** Writes a refusal, if the upstream sent the text of the refusal only with the stop. */
  #refusal({ reason, explanation }: StopEvent): string {
    if (reason !== 'refusal' || this.#hasRefusal || explanation === null) return ''
    const index = -1
    return this.#start({ type: 'part_start', index, part: { type: 'refusal' } }) + this.#delta(index, explanation)
      + this.#end({ type: 'part_end', index, opaque: null })
  }

  #itemEvent(type: string, { outputIndex, id }: OpenItem, more: JsonObject): string {
    return this.#event(type, { item_id: id, output_index: outputIndex, ...more })
  }

  #partEvent(type: string, item: OpenItem, more: JsonObject): string {
    return this.#itemEvent(type, item, { content_index: 0, ...more })
  }

  #summaryEvent(type: string, item: OpenItem, more: JsonObject): string {
    return this.#itemEvent(type, item, { summary_index: 0, ...more })
  }

  #event(type: string, more: JsonObject): string {
    return this.#encode(type, this.#sequence++, more)
  }
}

/** Writes a whole response. The body is equal to the response in the last event of a stream. */
export function writeResponsesBody(response: NeutralResponse, context: ClientContext): JsonObject {
  const { id, model, parts, usage } = response
  const stop = response.stop ?? { type: 'stop', reason: 'end', sequence: null, explanation: null } as const
  let final: JsonObject = {}
  const writer = new ResponsesResponseWriter(context, (_type, _sequenceNumber, members) => {
    final = members
    return ''
  })
  const events: ResponseEvent[] = [
    { type: 'start', id, model, usage },
    ...parts.flatMap(({ part, text, opaque }, index): ResponseEvent[] => [
      { type: 'part_start', index, part },
      ...text === '' ? [] : [{ type: 'delta', index, text } as const],
      { type: 'part_end', index, opaque },
    ]),
    stop,
    { type: 'usage', usage: usage ?? NO_USAGE },
    { type: 'end' },
  ]
  for (const event of events) writer.write(event)
  return final['response'] as JsonObject
}

function head(id: string | null, model: string | null, { created, uniqueId, model: asked, request }: ClientContext): JsonObject {
  const { temperature, topP, maxOutputTokens, metadata } = request
  return {
    id: id?.startsWith('resp_') ? id : `resp_${uniqueId}`, object: 'response', created_at: created, model: model ?? asked,
    error: null, incomplete_details: null, instructions: null, metadata: metadata ?? {}, parallel_tool_calls: request.parallelToolCalls ?? true,
    temperature, top_p: topP, max_output_tokens: maxOutputTokens, tool_choice: 'auto', tools: [], previous_response_id: null, store: false,
  }
}

/** @param hasRefusal true if the output contains the refusal; false = the status must show the refusal */
function outcomeOf({ reason }: StopEvent, hasRefusal: boolean): { readonly status: string, readonly incomplete_details: JsonObject | null } {
  const why = reason === 'refusal' && !hasRefusal ? INCOMPLETE.content_filter : INCOMPLETE[reason]
  return why === undefined ? { status: 'completed', incomplete_details: null } : { status: 'incomplete', incomplete_details: { reason: why } }
}

/** Seals the provider's value of thinking together with the text, because the provider requires the text unchanged. */
function encryptedOf({ part, text }: OpenItem, opaque: OpaqueValue | null, keys: CapsuleKeys): string | null {
  if (part.type !== 'thinking' || opaque === null) return null
  return seal(keys, 'opaque_value', { id: null, opaque: null, thinking: [{ text, opaque }] })
}

function callIdOf({ id }: ResponsePart & { readonly type: 'tool_call' }, uniqueId: string): string {
  return id === '' ? `call_${uniqueId}` : fittingToolId(id, CALL_IDS)
}

function writeUsage(usage: TokenUsage): JsonObject | null {
  if (!isReported(usage)) return null
  const { input, cachedInput, cacheWrite, output, reasoning } = usage
  return {
    input_tokens: input ?? 0,
    input_tokens_details: { cached_tokens: cachedInput ?? 0, ...withoutNulls({ cache_write_tokens: cacheWrite }) },
    output_tokens: output ?? 0,
    output_tokens_details: { reasoning_tokens: reasoning ?? 0 },
    total_tokens: (input ?? 0) + (output ?? 0),
  }
}
