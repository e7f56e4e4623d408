import { asNumber, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import type { PartsWriter } from '../neutral/parts-writer.ts'
import type { EventOutput } from '../neutral/response.ts'
import { ArgumentsScan } from './arguments-scan.ts'

/** Characters of a call's arguments that are held until its name or id arrives. */
const MAX_HELD = 1024 * 1024

interface OpenCall {
  /** Index of its part; null = not begun, because its name or id is not known yet. */
  index: number | null
  id: string
  name: string
  readonly isFreeform: boolean
  readonly arguments: ArgumentsScan
  /** Arguments that arrived before it began. */
  held: string
}

/** Reads the tool calls of a chat response, whole or in stream pieces. */
export class ToolCallReader {
  readonly #parts: PartsWriter
  /** By the upstream's index. */
  readonly #open = new Map<number, OpenCall>()
  /** Indexes of calls whose arguments are complete. */
  readonly #whole = new Set<number>()
  readonly #endText: (out: EventOutput) => void
  /** A call has begun. */
  hasCalls = false

  /** @param endText ends the open text when a call begins */
  constructor(parts: PartsWriter, endText: (out: EventOutput) => void) {
    this.#parts = parts
    this.#endText = endText
  }

  /** @param position in its list, used if the upstream gives no index */
  read(call: JsonObject, position: number, out: EventOutput): void {
    const custom = asObject(call['custom'])
    const content = custom ?? asObject(call['function']) ?? {}
    const text = custom === null ? argumentsText(content['arguments']) : asText(custom['input']) ?? ''
    const key = asNumber(call['index']) ?? position
    const id = asText(call['id']) ?? ''
    const name = asText(content['name']) ?? ''
    const open = this.#open.get(key)
    const current = open === undefined || isAnother(open, id, name, text) ? this.#add(key, custom !== null, out) : open
    current.id ||= id
    current.name ||= name
    current.arguments.add(text)
    if (current.arguments.isWhole) this.#whole.add(key)
    if (current.index !== null) {
      this.#parts.delta(current.index, text, out)
      return
    }
    current.held += text
    if ((current.id !== '' && current.name !== '') || current.held.length > MAX_HELD) this.#begin(current, out)
  }

  /** Ends all calls. */
  endAll(out: EventOutput): void {
    for (const call of this.#open.values()) this.#end(call, out)
    this.#open.clear()
    this.#whole.clear()
  }

  #add(key: number, isFreeform: boolean, out: EventOutput): OpenCall {
    // A call with complete arguments has ended, although chat reports the end of all calls only at the end of the
    // response.
    for (const ended of this.#whole.add(key)) {
      const call = this.#open.get(ended)
      if (call === undefined || (call.index === null && ended !== key)) continue
      this.#end(call, out)
      this.#open.delete(ended)
    }
    this.#whole.clear()
    const call: OpenCall = { index: null, id: '', name: '', isFreeform, arguments: new ArgumentsScan(), held: '' }
    this.#open.set(key, call)
    return call
  }

  #begin(call: OpenCall, out: EventOutput): void {
    const { id, name, isFreeform } = call
    this.#endText(out)
    this.hasCalls = true
    call.index = this.#parts.start({ type: 'tool_call', id, name, isFreeform, opaque: null }, out)
    this.#parts.delta(call.index, call.held, out)
    call.held = ''
  }

  #end(call: OpenCall, out: EventOutput): void {
    // Some servers announce a call and never send it: drop an empty one.
    if (call.index === null && (call.name !== '' || call.held.trim() !== '')) this.#begin(call, out)
    if (call.index !== null) this.#parts.end(call.index, null, out)
  }
}

/**
 * Does a piece with the index of the open call begin another call? Some servers use one index for all parallel calls:
 * a different id, or arguments after complete ones, then begin another call. Other servers repeat the name in each
 * piece, or send the id late.
 */
function isAnother(open: OpenCall, id: string, name: string, text: string): boolean {
  if (name === '') return false
  if (id !== '' && id !== open.id && (open.id !== '' || (open.name !== '' && name !== open.name))) return true
  return open.name !== '' && text.trim() !== '' && open.arguments.isWhole
}

/** Some servers send an object instead of text. */
function argumentsText(value: unknown): string {
  return typeof value === 'string' ? value : asObject(value) === null ? '' : JSON.stringify(value)
}
