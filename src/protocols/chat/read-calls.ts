import { asNumber, asObject, asText, type JsonObject } from '../neutral/json.ts'
import type { PartsWriter } from '../neutral/parts-writer.ts'
import type { EventOutput } from '../neutral/response.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Maximum characters of a call's arguments to hold until the call's name and id arrive. */
const MAX_HELD = 1024 * 1024

interface OpenCall {
  /** Index of the call's part; null = the part has not started, because the call's name or id is missing. */
  index: number | null
  id: string
  name: string
  readonly isFreeform: boolean
  readonly arguments: ArgumentsScan
  /** Arguments that arrived before the part started. */
  held: string
}

/** Reads the tool calls of a streamed or whole chat response. */
export class ToolCallReader {
  readonly #parts: PartsWriter
  /** Keys are the upstream's indexes of the calls. */
  readonly #open = new Map<number, OpenCall>()
  /** The upstream's indexes of calls whose arguments are complete. */
  readonly #whole = new Set<number>()
  readonly #endText: (out: EventOutput) => void
  hasCalls = false

  /** @param endText called when a call begins; ends the text part that is open */
  constructor(parts: PartsWriter, endText: (out: EventOutput) => void) {
    this.#parts = parts
    this.#endText = endText
  }

  /** @param position the call's position in the list, used if the upstream gives no index */
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

  endAll(out: EventOutput): void {
    for (const call of this.#open.values()) this.#end(call, out)
    this.#open.clear()
    this.#whole.clear()
  }

  #add(key: number, isFreeform: boolean, out: EventOutput): OpenCall {
    // Ends calls with complete arguments early: chat itself reports the end of calls only at the end of the response.
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
    // Drops a call without name and arguments, because some servers announce calls that they never send.
    if (call.index === null && (call.name !== '' || call.held.trim() !== '')) this.#begin(call, out)
    if (call.index !== null) this.#parts.end(call.index, null, out)
  }
}

/**
 * Tells whether a piece with the index of the open call begins another call. Some servers use one index for all parallel calls: then a
 * different id, or text after complete arguments, begins the next call. A repeated name or a late id does not, because some servers send
 * them for the open call.
 */
function isAnother(open: OpenCall, id: string, name: string, text: string): boolean {
  if (name === '') return false
  if (id !== '' && id !== open.id && (open.id !== '' || (open.name !== '' && name !== open.name))) return true
  return open.name !== '' && text.trim() !== '' && open.arguments.isWhole
}

/** Some servers send the arguments as an object instead of text. */
function argumentsText(value: unknown): string {
  return typeof value === 'string' ? value : asObject(value) === null ? '' : JSON.stringify(value)
}

/** Detects when JSON text that arrives in pieces is a complete object or list. The scan reads each character once. */
class ArgumentsScan {
  isWhole = false
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** The text does not begin with an object or a list. */
  #isOther = false

  add(text: string): void {
    for (let i = 0; i < text.length && !this.isWhole && !this.#isOther; i++) this.#character(text.charCodeAt(i))
  }

  #character(code: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (code === BACKSLASH) this.#isEscaped = true
      else if (code === QUOTE) this.#isInString = false
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      this.#depth++
    } else if (this.#depth === 0) {
      this.#isOther = code > 0x20
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      this.isWhole = --this.#depth === 0
    } else {
      this.#isInString = code === QUOTE
    }
  }
}
