import { Room } from '../../base/memory-reservation.ts'
import type { TakeRoom } from '../../base/memory-reservation.ts'
import { MAX_EVENT, SseReader, dataOf, missingLineEnds } from '../../protocols/shared/sse.ts'
import type { SseEvent } from '../../protocols/shared/sse.ts'
import { Pieces } from '../../proxy/chunk-list.ts'
import { kindOf, looksLikeData, parsed } from './stream-event.ts'

const NOTHING = Buffer.alloc(0)

/** Why an event is kept from the client. */
export type FlawKind = 'error' | 'malformed' | 'too_long'

interface Found {
  readonly kind: FlawKind
  readonly start: number
  readonly end: number
}

/**
 * Lets a stream of events pass in whole events, so that another stream can go on
 * wherever this one breaks; and neither an error of the protocol's own nor an
 * event that is not well-formed, nor what comes behind them.
 */
export class WholeEvents {
  /** The event that is kept from the client; null = none is. */
  flaw: { readonly kind: FlawKind; readonly bytes: Buffer } | null = null
  /** An event was too long to wait for: from there on everything passes as it comes. */
  overflowed = false
  readonly #joined: boolean
  readonly #held = new Pieces()
  readonly #room: Room
  /** Where in the stream the held bytes begin, and where the flaw stands. */
  #offset = 0
  #found: Found | null = null
  #isClosed = false
  /** The end of the stream has cut an event in two. */
  #isHalf = false
  /** What the event says that lacks no more than its blank line there; null = there is none. */
  #last: string | null = null
  readonly #reader: SseReader

  /**
   * @param joined they go on with another stream: an event too long to be translated is a flaw
   * @param room memory for events that are not whole yet; without it there always is some
   */
  constructor(joined = false, room?: TakeRoom) {
    this.#joined = joined
    this.#room = new Room(room)
    this.#reader = new SseReader(event => this.#look(event), { room })
  }

  /** @returns the events that are whole by now */
  push(chunk: Buffer): Buffer {
    if (this.overflowed) return chunk
    if (this.flaw !== null) return NOTHING
    this.#reader.push(chunk)
    if (this.#found !== null) return this.#before(this.#found, this.#take(chunk))
    const cut = this.#reader.blockStart - this.#offset
    const open = this.#held.size + chunk.length - cut
    if (open > MAX_EVENT || !this.#room.hold(open)) {
      if (this.#joined) {
        const start = this.#offset + cut
        return this.#before({ kind: 'too_long', start, end: start }, this.#take(chunk))
      }
      this.overflowed = true
      this.#letGo()
      return this.#take(chunk)
    }
    if (cut === 0) {
      this.#hold(chunk)
      return NOTHING
    }
    const bytes = this.#take(chunk)
    this.#offset += cut
    this.#hold(bytes.subarray(cut))
    return bytes.subarray(0, cut)
  }

  #before({ kind, start, end }: Found, bytes: Buffer): Buffer {
    this.flaw = { kind, bytes: Buffer.from(bytes.subarray(start - this.#offset, end - this.#offset)) }
    this.#letGo()
    return bytes.subarray(0, start - this.#offset)
  }

  /** Nothing is read any more: what is kept to be read later has no use. */
  #letGo(): void {
    this.#reader.drop()
    this.#room.hold(0)
  }

  /** A copy is kept: a little of a large buffer would keep all of it in memory. */
  #hold(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#held.push(Buffer.from(bytes))
  }

  /** What was held, and that. */
  #take(bytes: Buffer): Buffer {
    if (this.#held.size === 0) return bytes
    const whole = Buffer.concat([...this.#held.list, bytes])
    this.#held.clear()
    return whole
  }

  #look(event: SseEvent): void {
    if (this.#isClosed) {
      this.#lookLast(event)
      return
    }
    if (this.#found !== null || looksLikeData(event)) return
    const { start, end } = event
    const kind = event.oversize && this.#joined ? 'too_long' : kindOf(event)
    if (kind === 'error' || kind === 'malformed' || kind === 'too_long') this.#found = { kind, start, end }
  }

  #lookLast(event: SseEvent): void {
    this.#isHalf = !event.terminated && !isWhole(event)
    if (this.#isHalf) return
    this.#last = dataOf(event)
    if (looksLikeData(event) || kindOf({ ...event, terminated: true }) !== 'error') return
    this.flaw = { kind: 'error', bytes: withLineEnds(this.#take(NOTHING)) }
  }

  /** No more will come: an error is one without its blank line, too. */
  close(): void {
    if (this.#isClosed || this.overflowed || this.flaw !== null) return
    this.#isClosed = true
    this.#reader.end()
  }

  /**
   * What is left when no more will come.
   *
   * @param wants asked of what the event says that lacks its blank line, or a part of it; null = all are
   * @returns that event, and its blank line; nothing where it is half of one, or is not wanted
   */
  end(wants: ((data: string) => boolean) | null = null): Buffer {
    this.close()
    const rest = this.#take(NOTHING)
    const isWanted = wants === null ? !this.#isHalf : this.#last !== null && wants(this.#last)
    return isWanted && rest.length > 0 ? withLineEnds(rest) : NOTHING
  }
}

function withLineEnds(event: Buffer): Buffer {
  return Buffer.concat([event, missingLineEnds(event)])
}

/** Does it lack no more than its blank line? */
function isWhole(event: SseEvent): boolean {
  const data = dataOf(event)
  return event.oversize || data === '[DONE]' || parsed(data) !== undefined
}
