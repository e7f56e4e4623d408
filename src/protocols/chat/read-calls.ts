import { asNumber, asObject, asText } from '../neutral/json.ts'
import type { JsonObject } from '../neutral/json.ts'
import type { PartsWriter } from '../neutral/parts-writer.ts'
import type { ResponseEvent } from '../neutral/response.ts'
import { ArgumentsScan } from './arguments-scan.ts'

/** Characters of the arguments of a call that wait for its name or its id. */
const MAX_HELD = 1024 * 1024

interface OpenCall {
  /** Of its part; null = it has not begun, because its name or its id is not known yet. */
  index: number | null
  id: string
  name: string
  readonly isFreeform: boolean
  readonly arguments: ArgumentsScan
  /** Arguments that came before it has begun. */
  held: string
}

/** Reads the tool calls of a chat response, of which a stream brings pieces. */
export class ToolCallReader {
  readonly #parts: PartsWriter
  /** By the number that the upstream gives them. */
  readonly #open = new Map<number, OpenCall>()
  /** The numbers of those whose arguments are whole. */
  readonly #whole = new Set<number>()
  readonly #endText: (out: ResponseEvent[]) => void
  /** A call has begun. */
  hasCalls = false

  /** @param endText ends the text before a call that begins */
  constructor(parts: PartsWriter, endText: (out: ResponseEvent[]) => void) {
    this.#parts = parts
    this.#endText = endText
  }

  /** @param position in its list, where the upstream gives it no number */
  read(call: JsonObject, position: number, out: ResponseEvent[]): void {
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

  /** No more calls come. */
  endAll(out: ResponseEvent[]): void {
    for (const call of this.#open.values()) this.#end(call, out)
    this.#open.clear()
    this.#whole.clear()
  }

  #add(key: number, isFreeform: boolean, out: ResponseEvent[]): OpenCall {
    // A call whose arguments are whole has ended, although chat says so of all at the end alone.
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

  #begin(call: OpenCall, out: ResponseEvent[]): void {
    const { id, name, isFreeform } = call
    if (name === '') {
      out.push({ type: 'error', error: NAMELESS })
      return
    }
    this.#endText(out)
    this.hasCalls = true
    call.index = this.#parts.start({ type: 'tool_call', id, name, isFreeform, opaque: null }, out)
    this.#parts.delta(call.index, call.held, out)
    call.held = ''
  }

  #end(call: OpenCall, out: ResponseEvent[]): void {
    // Servers announce calls that do not come.
    if (call.index === null && (call.name !== '' || call.held.trim() !== '')) this.#begin(call, out)
    if (call.index !== null) this.#parts.end(call.index, null, out)
  }
}

const NAMELESS = {
  kind: 'server', status: 502, message: 'the upstream sent a tool call without a name', code: 'upstream_invalid', param: null,
} as const

/**
 * Some servers give all parallel calls one index: another id is another call, and so is more behind whole arguments.
 * Others repeat the name in each piece, or tell the id late.
 */
function isAnother(open: OpenCall, id: string, name: string, text: string): boolean {
  if (name === '') return false
  if (id !== '' && id !== open.id && (open.id !== '' || (open.name !== '' && name !== open.name))) return true
  return open.name !== '' && text.trim() !== '' && open.arguments.isWhole
}

/** Some servers send an object instead of its text. */
function argumentsText(value: unknown): string {
  return typeof value === 'string' ? value : asObject(value) === null ? '' : JSON.stringify(value)
}
