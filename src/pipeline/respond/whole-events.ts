import { MemoryReservation } from '../../base/memory-reservation.ts'
import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { MAX_EVENT, SseReader, eventData, missingLineEnds } from '../../protocols/shared/sse.ts'
import type { SseEvent } from '../../protocols/shared/sse.ts'
import { ChunkList } from '../../proxy/chunk-list.ts'
import { kindOf, looksLikeData, parseJson } from './stream-event.ts'

const NOTHING = Buffer.alloc(0)

/** Why an event is kept from the client. */
export type StreamFaultKind = 'error' | 'malformed' | 'too_long'

interface FaultLocation {
  readonly kind: StreamFaultKind
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
  fault: { readonly kind: StreamFaultKind; readonly bytes: Buffer } | null = null
  /** An event was too long to wait for: from there on everything passes as it comes. */
  overflowed = false
  readonly #joined: boolean
  readonly #held = new ChunkList()
  readonly #memory: MemoryReservation
  /** Where in the stream the held bytes begin, and where the flaw stands. */
  #offset = 0
  #faultLocation: FaultLocation | null = null
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
  constructor(joined = false, room?: ReserveMemory) {
    this.#joined = joined
    this.#memory = new MemoryReservation(room)
    this.#reader = new SseReader(event => this.#inspect(event), { reserveMemory: room })
  }

  /** @returns the events that are whole by now */
  push(chunk: Buffer): Buffer {
    if (this.overflowed) return chunk
    if (this.fault !== null) return NOTHING
    this.#reader.push(chunk)
    if (this.#faultLocation !== null) return this.#stopAtFault(this.#faultLocation, this.#take(chunk))
    const cut = this.#reader.blockStart - this.#offset
    const open = this.#held.size + chunk.length - cut
    if (open > MAX_EVENT || !this.#memory.resize(open)) {
      if (this.#joined) {
        const start = this.#offset + cut
        return this.#stopAtFault({ kind: 'too_long', start, end: start }, this.#take(chunk))
      }
      this.overflowed = true
      this.#releaseMemory()
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

  #stopAtFault({ kind, start, end }: FaultLocation, bytes: Buffer): Buffer {
    this.fault = { kind, bytes: Buffer.from(bytes.subarray(start - this.#offset, end - this.#offset)) }
    this.#releaseMemory()
    return bytes.subarray(0, start - this.#offset)
  }

  /** Nothing is read any more: what is kept to be read later has no use. */
  #releaseMemory(): void {
    this.#reader.drop()
    this.#memory.resize(0)
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

  #inspect(event: SseEvent): void {
    if (this.#isClosed) {
      this.#inspectLast(event)
      return
    }
    if (this.#faultLocation !== null || looksLikeData(event)) return
    const { start, end } = event
    const kind = event.oversize && this.#joined ? 'too_long' : kindOf(event)
    if (kind === 'error' || kind === 'malformed' || kind === 'too_long') this.#faultLocation = { kind, start, end }
  }

  #inspectLast(event: SseEvent): void {
    this.#isHalf = !event.terminated && !isWhole(event)
    if (this.#isHalf) return
    this.#last = eventData(event)
    if (looksLikeData(event) || kindOf({ ...event, terminated: true }) !== 'error') return
    this.fault = { kind: 'error', bytes: withLineEnds(this.#take(NOTHING)) }
  }

  /** No more will come: an error is one without its blank line, too. */
  close(): void {
    if (this.#isClosed || this.overflowed || this.fault !== null) return
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
  const data = eventData(event)
  return event.oversize || data === '[DONE]' || parseJson(data) !== undefined
}
