import { GatewayError } from '../../base/errors.ts'
import { MemoryReservation } from '../../base/memory-reservation.ts'
import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { ownCopy } from '../../base/own-copy.ts'
import type { UsageFilter } from '../../protocols/shared/protocol.ts'
import type { EventTranslator, ResumableStream } from '../../protocols/shared/resumable-stream.ts'
import { MAX_EVENT, missingLineEnds } from '../../protocols/shared/sse.ts'
import { kindOf, looksLikeData } from '../../protocols/shared/stream-event.ts'
import type { EventContent, EventReader, EventSink, StreamEvent } from '../../protocols/shared/stream-event.ts'
import { ChunkList } from '../../proxy/chunk-list.ts'

const NOTHING = Buffer.alloc(0)

/** Why an event is kept from the client, and the error that this is. */
const FAULTS = {
  error: ['upstream_cut', 'the upstream broke off the stream with an error'],
  malformed: ['upstream_invalid', 'the upstream sent an event that is not well-formed'],
  too_long: ['upstream_invalid', 'the upstream sent an event that is too long to be translated'],
} as const

type StreamFaultKind = keyof typeof FAULTS

interface FaultLocation {
  readonly kind: StreamFaultKind
  readonly start: number
  readonly end: number
}

export type OnStreamFault = (error: GatewayError) => void

export interface ContinuationStageOptions {
  /** Reports its events to this stage. */
  readonly reader: EventReader
  /** Hides events from the client; null = none is hidden. */
  readonly filter: UsageFilter | null
  /** Records what the client gets. */
  readonly resumable: ResumableStream
  /** Translates a response that continues another; null = this is the first, and passes as it is. */
  readonly translate: EventTranslator | null
  /** Memory for events that are not whole yet; absent = no limit. */
  readonly reserveMemory?: ReserveMemory | undefined
  /** Called soon after an event came that the client does not get. */
  readonly onStreamFault: OnStreamFault
}

/**
 * Passes a stream on in whole events, so that another upstream can continue it wherever it breaks. It drops an error
 * event, an event that is not well-formed, and all that follows them.
 */
export class ContinuationStage implements EventSink {
  /** The event that is kept from the client; null = none is. */
  fault: { readonly kind: StreamFaultKind; readonly bytes: Buffer } | null = null
  /** An event was too long to wait for: from there on everything passes as it comes. */
  overflowed = false
  readonly #options: ContinuationStageOptions
  readonly #held = new ChunkList()
  readonly #memory: MemoryReservation
  /** Where in the stream the held bytes begin, and where the fault is. */
  #heldFrom = 0
  #faultLocation: FaultLocation | null = null
  #isClosed = false
  /** The end of the stream has cut an event in two. */
  #isHalf = false
  /** The event that lacks no more than its blank line at the end of the stream; null = there is none. */
  #last: (EventContent & { readonly isHidden: boolean }) | null = null
  /** What the translated events are, as far as they were not taken. */
  #translated = ''

  constructor(options: ContinuationStageOptions) {
    this.#options = options
    this.#memory = new MemoryReservation(options.reserveMemory)
  }

  event(event: StreamEvent): void {
    const { filter, translate, resumable } = this.#options
    if (this.#faultLocation !== null || this.fault !== null) return
    if (this.overflowed) {
      filter?.event(event)
    } else if (this.#isClosed) {
      this.#inspectLast(event)
    } else if (!this.#findFault(event) && filter?.event(event) !== false) {
      if (translate) this.#translated += translate(event)
      else if (isTooLong(event)) resumable.recordOversize()
      else resumable.recordSent(event)
    }
  }

  /** @returns the events that are whole by now, as the client gets them */
  take(chunk: Buffer): Buffer {
    const { reader, filter, translate } = this.#options
    if (this.overflowed) return filter?.take(chunk) ?? chunk
    if (this.fault !== null) return NOTHING
    if (this.#faultLocation !== null) return this.#stopAtFault(this.#faultLocation, chunk)
    const { blockStart, offset } = reader
    const open = offset - blockStart
    if (open > MAX_EVENT || !this.#memory.resize(open)) {
      if (translate) return this.#stopAtFault({ kind: 'too_long', start: blockStart, end: blockStart }, chunk)
      this.overflowed = true
      this.#memory.resize(0)
      const bytes = this.#join(chunk)
      return filter?.take(bytes) ?? bytes
    }
    if (blockStart === this.#heldFrom) {
      this.#hold(chunk)
      return NOTHING
    }
    const bytes = this.#join(chunk)
    const start = this.#heldFrom
    this.#heldFrom = blockStart
    this.#hold(bytes.subarray(blockStart - start))
    return this.#passOn(open === 0 ? bytes : bytes.subarray(0, blockStart - start), start)
  }

  /** No more will come: the events from now on are what the end of the stream has cut off. */
  close(): void {
    this.#isClosed = true
  }

  /** The stream has ended. @returns what is left of it, with the blank line that the last event may lack */
  rest(): Buffer {
    if (this.overflowed) return this.#options.filter?.rest() ?? NOTHING
    return this.#isHalf ? NOTHING : this.#passLast()
  }

  /**
   * The stream broke.
   *
   * @returns the event that lacks no more than its blank line, as the client gets it, if nothing can follow
   *   it; of any other event another upstream has more to say, and may repeat that one
   */
  takeLastEvent(): Buffer {
    const isWanted = this.#last !== null && this.#options.resumable.isLastEvent(this.#last)
    return isWanted ? this.#passLast() : NOTHING
  }

  #findFault(event: StreamEvent): boolean {
    const { start, end } = event
    const isUntranslatable = this.#options.translate !== null && isTooLong(event)
    if (!isUntranslatable && looksLikeData(event)) return false
    const kind = isUntranslatable ? 'too_long' : kindOf(event)
    if (kind !== 'error' && kind !== 'malformed' && kind !== 'too_long') return false
    this.#faultLocation = { kind, start, end }
    return true
  }

  #stopAtFault({ kind, start, end }: FaultLocation, chunk: Buffer): Buffer {
    const heldFrom = this.#heldFrom
    const bytes = this.#join(chunk)
    this.fault = { kind, bytes: Buffer.from(bytes.subarray(start - heldFrom, end - heldFrom)) }
    this.#memory.resize(0)
    const [code, message] = FAULTS[kind]
    // Not now: what comes before it has to reach the client first.
    queueMicrotask(() => this.#options.onStreamFault(new GatewayError(code, message)))
    return this.#passOn(bytes.subarray(0, start - heldFrom), heldFrom)
  }

  /** @param start where in the stream the bytes of whole events begin */
  #passOn(bytes: Buffer, start: number): Buffer {
    const { filter, translate } = this.#options
    if (!translate) return filter?.withoutHidden(bytes, start) ?? bytes
    const translated = Buffer.from(this.#translated)
    this.#translated = ''
    return translated
  }

  #inspectLast(event: StreamEvent): void {
    const { text, value, terminated, oversize } = event
    this.#isHalf = !terminated && !oversize && text !== '[DONE]' && value === undefined
    if (this.#isHalf) return
    if (!looksLikeData(event) && kindOf(event, true) === 'error') {
      this.fault = { kind: 'error', bytes: withLineEnds(this.#join(NOTHING)) }
      return
    }
    this.#last = { text, value, isHidden: this.#options.filter?.event(event) === false }
  }

  #passLast(): Buffer {
    const bytes = this.#join(NOTHING)
    if (bytes.length === 0 || this.#last?.isHidden) return NOTHING
    const { translate, resumable } = this.#options
    if (translate) return Buffer.from(this.#last ? translate(this.#last) : '')
    if (this.#last) resumable.recordSent(this.#last)
    return withLineEnds(bytes)
  }

  /** A copy is kept: a little of a large buffer would keep all of it in memory. */
  #hold(bytes: Buffer): void {
    if (bytes.length > 0) this.#held.push(ownCopy(bytes))
  }

  /** What was held, and that. */
  #join(bytes: Buffer): Buffer {
    if (this.#held.size === 0) return bytes
    const whole = Buffer.concat([...this.#held.list, bytes])
    this.#held.clear()
    return whole
  }
}

function isTooLong({ oversize, start, end }: StreamEvent): boolean {
  return oversize || end - start > MAX_EVENT
}

function withLineEnds(event: Buffer): Buffer {
  return Buffer.concat([event, missingLineEnds(event)])
}
