import { isObject } from '../../base/is-object.ts'
import type { CallReader } from '../../protocols/events/call-reader.ts'
import { parseJsonText, type EventContent, type StreamEvent } from '../../protocols/events/stream-event.ts'

/** Maximum bytes of a tool call that is held. A longer call passes as it arrives, and its stream cannot be continued. */
export const MAX_HELD_CALL = 1024 * 1024

const DONE = '[DONE]'

/** The events of a tool call that is not complete. Held, so that the client gets whole calls only and a cut inside a call loses nothing. */
export class HeldCall {
  readonly #read: CallReader | null
  readonly #release: (event: EventContent) => void
  readonly #texts: string[] = []
  #from: number | null = null
  #end = 0

  /** @param read null = the protocol sends whole calls only @param release called for each event that is no longer held */
  constructor(read: CallReader | null, release: (event: EventContent) => void) {
    this.#read = read
    this.#release = release
  }

  /** Offset of the first held event in the stream; null = no call is held. */
  get from(): number | null {
    return this.#from
  }

  /** Offset behind the last held event. */
  get end(): number {
    return this.#end
  }

  /** Releases the calls that are complete before or with this event. @returns true = the event is held */
  holds(event: StreamEvent): boolean {
    if (this.#read === null) return false
    const { value } = event
    const step = isObject(value) ? this.#read(value) : event.text === DONE ? 'ends' : 'within'
    if (step !== 'within') this.release()
    if (step === 'starts') this.#from = event.start
    if (this.#from === null) return false
    this.#texts.push(event.text)
    this.#end = event.end
    return true
  }

  release(): void {
    this.#from = null
    // Keep text only and parse it again: parsed events take several times its memory.
    for (const text of this.#texts.splice(0)) this.#release({ text, value: parseJsonText(text) })
  }

  discard(): void {
    this.#from = null
    this.#texts.length = 0
  }
}
