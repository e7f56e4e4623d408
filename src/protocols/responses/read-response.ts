import { asList, asNumber, asObject, asText, type JsonObject } from '../neutral/json.ts'
import { readOpenaiError } from '../neutral/dialects/openai-error.ts'
import type { OpaqueValue } from '../neutral/opaque.ts'
import { PartsWriter } from '../neutral/parts-writer.ts'
import { startEvent, type EventOutput, type ResponsePart, type StopReason } from '../neutral/response.ts'
import type { ResponseReader } from '../neutral/translation.ts'
import { readTokens } from '../usage/token-usage.ts'
import { readResponsesError } from './errors.ts'
import { RESPONSES_USAGE } from './usage.ts'

interface OpenPart {
  readonly index: number
  hasText: boolean
  /** Index of the last summary of reasoning. */
  summary: number
}

/** Reads a streamed or whole response. */
export class ResponsesResponseReader implements ResponseReader {
  readonly #provider: string
  readonly #parts = new PartsWriter()
  /** Open parts by key. The key of an item is `3`, and the key of a part of a message is `3:0`. */
  readonly #open = new Map<string, OpenPart>()
  /** The keys of each message's parts, by the key of the message's item. */
  readonly #partKeys = new Map<string, Set<string>>()
  /** The keys of items that the stream sent completely. */
  readonly #done = new Set<string>()
  /** The keys of items, by item id and by call id. */
  readonly #keys = new Map<string, string>()
  /** The types of items by key. */
  readonly #types = new Map<string, unknown>()
  /** The keys of messages whose content arrived in deltas. */
  readonly #told = new Set<string>()
  #hasCalls = false
  #hasRefusal = false

  constructor(provider: string) {
    this.#provider = provider
  }

  event(name: string, value: unknown, out: EventOutput): void {
    const event = asObject(value)
    if (event === null) return
    switch (asText(event['type']) ?? name) {
      case 'response.created':
      case 'response.in_progress': return this.#start(asObject(event['response']) ?? {}, out)
      case 'response.output_item.added': return this.#itemAdded(itemKey(event), asObject(event['item']) ?? {}, false, out)
      case 'response.output_text.delta': return this.#delta(partKey(event), { type: 'text' }, event, out)
      case 'response.refusal.delta':
        this.#hasRefusal = true
        return this.#delta(partKey(event), { type: 'refusal' }, event, out)
      case 'response.output_text.done':
      case 'response.refusal.done': return this.#end(partKey(event), null, out)
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta': return this.#thinkingDelta(event, out)
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta': return this.#more(itemKey(event), asText(event['delta']) ?? '', out)
      case 'response.output_item.done': return this.#itemDone(itemKey(event), asObject(event['item']) ?? {}, out)
      case 'response.completed':
      case 'response.incomplete': return this.#finish(asObject(event['response']) ?? {}, out)
      case 'response.failed':
        out.push({ type: 'error', error: readResponsesError(500, event) })
        break
      case 'error':
        out.push({ type: 'error', error: readOpenaiError(500, asObject(event['error']) === null ? { error: event } : event) })
        break
    }
  }

  body(value: JsonObject, out: EventOutput): void {
    if ((value['error'] ?? null) !== null || value['status'] === 'failed') {
      out.push({ type: 'error', error: readResponsesError(500, value) })
      return
    }
    if (!Array.isArray(value['output'])) return
    this.#finish(value, out)
  }

  #start(response: JsonObject, out: EventOutput): void {
    out.push(startEvent(asText(response['id']), asText(response['model']), null))
  }

  #itemAdded(key: string, item: JsonObject, isDone: boolean, out: EventOutput): void {
    this.#know(key, item)
    const isFreeform = item['type'] === 'custom_tool_call'
    if (!isFreeform && item['type'] !== 'function_call') return
    const call = { id: asText(item['call_id']) ?? '', name: asText(item['name']) ?? '' }
    // Wait for the done item: some servers send the id or name of a call only there.
    if (!isDone && (call.id === '' || call.name === '')) return
    this.#hasCalls = true
    this.#begin(key, { type: 'tool_call', ...call, isFreeform, opaque: null }, out)
  }

  #begin(key: string, part: ResponsePart, out: EventOutput): OpenPart {
    this.#end(key, null, out)
    const open = { index: this.#parts.start(part, out), hasText: false, summary: 0 }
    this.#open.set(key, open)
    return open
  }

  #delta(key: string, part: ResponsePart, event: JsonObject, out: EventOutput): void {
    this.#tell(event, 'message')
    this.#told.add(itemKey(event))
    if (!this.#open.has(key)) {
      this.#begin(key, part, out)
      const keys = this.#partKeys.get(itemKey(event)) ?? new Set()
      this.#partKeys.set(itemKey(event), keys.add(key))
    }
    this.#more(key, asText(event['delta']) ?? '', out)
  }

  #more(key: string, text: string, out: EventOutput): void {
    const open = this.#open.get(key)
    if (open === undefined || text === '') return
    open.hasText = true
    this.#parts.delta(open.index, text, out)
  }

  /** Reads a delta of reasoning. All summaries of an item become one thinking part. */
  #thinkingDelta(event: JsonObject, out: EventOutput): void {
    const key = itemKey(event)
    this.#tell(event, 'reasoning')
    const open = this.#open.get(key) ?? this.#begin(key, { type: 'thinking' }, out)
    const summary = asNumber(event['summary_index']) ?? asNumber(event['content_index']) ?? 0
    if (summary !== open.summary && open.hasText) this.#more(key, '\n\n', out)
    open.summary = summary
    this.#more(key, asText(event['delta']) ?? '', out)
  }

  #end(key: string, opaque: OpaqueValue | null, out: EventOutput): void {
    const open = this.#open.get(key)
    if (open === undefined) return
    this.#open.delete(key)
    this.#parts.end(open.index, opaque, out)
  }

  /** Records the item of a delta, in case the stream did not announce the item. */
  #tell(event: JsonObject, type: string): void {
    const key = itemKey(event)
    if (!this.#types.has(key)) this.#know(key, { type, id: event['item_id'] })
  }

  #know(key: string, item: JsonObject): void {
    this.#types.set(key, item['type'])
    for (const id of [asText(item['id']), asText(item['call_id'])]) if (id) this.#keys.set(id, key)
  }

  /** The key of an item of the whole response. The key is new if the stream did not contain the item. */
  #keyOf(item: JsonObject, at: number): string {
    const known = this.#keys.get(asText(item['id']) ?? '') ?? this.#keys.get(asText(item['call_id']) ?? '')
    if (known !== undefined) return known
    const key = String(at)
    return !this.#types.has(key) || this.#types.get(key) === item['type'] ? key : `whole ${key}`
  }

  /** Ends an item. Content that did not arrive in deltas is read from the item. */
  #itemDone(key: string, item: JsonObject, out: EventOutput): void {
    this.#know(key, item)
    this.#done.add(key)
    switch (item['type']) {
      case 'function_call':
      case 'custom_tool_call': {
        if (!this.#open.has(key)) this.#itemAdded(key, item, true, out)
        if (this.#open.get(key)?.hasText === false) this.#more(key, asText(item['arguments']) ?? asText(item['input']) ?? '', out)
        this.#end(key, null, out)
        break
      }
      case 'reasoning':
        this.#reasoningDone(key, item, out)
        break
      case 'message':
        for (const open of this.#partKeys.get(key) ?? []) this.#end(open, null, out)
        this.#partKeys.delete(key)
        if (!this.#told.has(key)) this.#message(key, item, out)
        break
    }
  }

  #message(key: string, item: JsonObject, out: EventOutput): void {
    for (const [at, value] of asList(item['content']).entries()) {
      const part = asObject(value) ?? {}
      const isRefusal = part['type'] === 'refusal'
      const text = asText(isRefusal ? part['refusal'] : part['text']) ?? ''
      this.#hasRefusal ||= isRefusal
      this.#begin(`${key}:${at}`, { type: isRefusal ? 'refusal' : 'text' }, out)
      this.#more(`${key}:${at}`, text, out)
      this.#end(`${key}:${at}`, null, out)
    }
  }

  #reasoningDone(key: string, item: JsonObject, out: EventOutput): void {
    const encrypted = asText(item['encrypted_content'])
    const texts = [...asList(item['summary']), ...asList(item['content'])].map(part => asText(asObject(part)?.['text']) ?? '')
    if (!this.#open.has(key)) {
      if (encrypted === null && texts.length === 0) return
      this.#begin(key, { type: 'thinking' }, out)
      this.#more(key, texts.join('\n\n'), out)
    }
    this.#end(key, encrypted === null ? null : { provider: this.#provider, value: encrypted }, out)
  }

  #finish(response: JsonObject, out: EventOutput): void {
    this.#start(response, out)
    // Some servers send some items only in the whole response.
    for (const [at, value] of asList(response['output']).entries()) {
      const item = asObject(value) ?? {}
      const key = this.#keyOf(item, at)
      if (!this.#done.has(key)) this.#itemDone(key, item, out)
    }
    for (const key of this.#open.keys()) this.#end(key, null, out)
    const reason = this.#stopReason(asText(asObject(response['incomplete_details'])?.['reason']))
    out.push({ type: 'stop', reason, sequence: null, explanation: null })
    const usage = readTokens(RESPONSES_USAGE, response['usage'])
    if (usage !== null) out.push({ type: 'usage', usage })
    out.push({ type: 'end' })
  }

  #stopReason(incomplete: string | null): StopReason {
    if (incomplete === 'max_output_tokens') return 'max_tokens'
    if (incomplete === 'content_filter') return 'content_filter'
    if (this.#hasCalls) return 'tool_calls'
    return this.#hasRefusal ? 'refusal' : 'end'
  }
}

function itemKey(event: JsonObject): string {
  return String(asNumber(event['output_index']) ?? 0)
}

function partKey(event: JsonObject): string {
  return `${itemKey(event)}:${asNumber(event['content_index']) ?? 0}`
}
