import type { TextKind } from './generated-text.ts'
import type { StreamEvent } from './stream-event.ts'

/** The choice or tool call to which a text belongs, and the kind of the text. */
export interface TextLane {
  readonly kind: TextKind
  readonly index: number
}

/** A part of an event's data that may differ in repetitions. `start` and `end` count from the start of the data. */
export interface Place {
  readonly start: number
  readonly end: number
  /** What the place contains: the inside of a string, digits, or no bytes. Without bytes, only its position is used. */
  readonly holds: 'string' | 'digits' | 'nothing'
  /** The lane of the text at this place; null = the value has no effect on metering. */
  readonly lane: TextLane | null
}

const MAX_BYTES = 4096
/** Events with more places are not remembered. */
export const MAX_PLACES = 32
const ZERO = 0x30
const NINE = 0x39
const BACKSLASH = 0x5c

/** A parsed event. It recognises later events that differ from it only at some places: native comparisons check the rest. */
export class RepeatedEvent {
  /** The places that may differ, in the order of the data. */
  readonly places: readonly Place[]
  /** Start and end of each place in the event that matched last, from the start of the data. */
  readonly starts: number[] = []
  readonly ends: number[] = []
  readonly #known: readonly Place[]
  readonly #name: string
  readonly #data: string
  /** The data before each place, and the data behind the last place. */
  readonly #between: readonly string[]

  private constructor(name: string, data: string, known: readonly Place[], places: readonly Place[]) {
    this.#name = name
    this.#data = data
    this.#known = known
    this.places = places
    this.#between = [...places, { start: data.length }].map(({ start }, n) => data.slice(places[n - 1]?.end ?? 0, start))
  }

  /**
   * @param known all places of the event that may differ
   * @param before the previous event: a value without effect may differ if both events have different values at that place
   * @returns null = the event is too large to remember
   */
  static of({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent, known: Place[], before: RepeatedEvent | null): RepeatedEvent | null {
    if (dataEnd - dataStart > MAX_BYTES) return null
    const data = buf.toString('latin1', dataStart, dataEnd)
    known.sort((a, b) => a.start - b.start)
    const other = before !== null && before.#known.length === known.length ? before : null
    const isFree = ({ start, end, holds, lane }: Place, n: number): boolean => (
      lane !== null || holds === 'nothing' || (other !== null && other.#differsAt(n, data.slice(start, end)))
    )
    return new RepeatedEvent(buf.toString('latin1', nameStart, nameEnd), data, known, known.filter(isFree))
  }

  /** Tells whether the value at this place differed in an earlier repetition, or differs now. */
  #differsAt(n: number, value: string): boolean {
    const place = this.#known[n] as Place
    return this.places.includes(place) || this.#data.slice(place.start, place.end) !== value
  }

  /** Tells whether an event repeats this event. If so, `starts` and `ends` are the bounds of the places, and no text is empty. */
  matches({ buf, dataStart, dataEnd, nameStart, nameEnd }: StreamEvent): boolean {
    if (dataEnd - dataStart > MAX_BYTES || nameEnd - nameStart !== this.#name.length) return false
    const data = buf.toString('latin1', dataStart, dataEnd)
    const { places, starts, ends } = this
    let at = 0
    for (let n = 0; n < places.length; n++) {
      const before = this.#between[n] as string
      const start = at + before.length
      // This comparison is twice as fast as startsWith.
      if (data.slice(at, start) !== before) return false
      const { holds, lane } = places[n] as Place
      at = start
      if (holds === 'string') {
        at = data.indexOf('"', start)
        if (data.charCodeAt(at - 1) === BACKSLASH) at = stringEnd(data, start, at)
      } else if (holds === 'digits') {
        at = digitsEnd(data, start)
      }
      if (at === -1 || (at === start && (lane !== null || holds === 'digits'))) return false
      starts[n] = start
      ends[n] = at
    }
    if (data.slice(at) !== this.#between[places.length]) return false
    return this.#name === '' || buf.toString('latin1', nameStart, nameEnd) === this.#name
  }
}

/** The end of the JSON string whose content begins at `start`; -1 = the string does not end. `quote` is the first quote in the string. */
function stringEnd(data: string, start: number, quote: number): number {
  for (let end = quote; end !== -1; end = data.indexOf('"', end + 1)) {
    let slashes = 0
    while (end - slashes > start && data.charCodeAt(end - slashes - 1) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return end
  }
  return -1
}

function digitsEnd(data: string, start: number): number {
  let at = start
  while (data.charCodeAt(at) >= ZERO && data.charCodeAt(at) <= NINE) at++
  return at
}
