import type { Clock } from '../../base/clock.ts'
import { GatewayError } from '../../base/errors.ts'
import { MemoryReservation, type ReserveMemory } from '../../base/memory-reservation.ts'
import { ownCopy } from '../../base/own-copy.ts'
import type { UsageFilter } from '../../protocols/endpoint/protocol.ts'
import type { CallReader } from '../../protocols/events/call-reader.ts'
import type { EventTranslator, ResumableStream } from '../../protocols/events/resumable-stream.ts'
import { MAX_EVENT, missingLineEnds } from '../../protocols/events/sse.ts'
import { kindOf, looksLikeData } from '../../protocols/events/stream-event.ts'
import type { EventContent, EventReader, EventSink, StreamEvent } from '../../protocols/events/stream-event.ts'
import { ChunkList } from '../../proxy/http/chunk-list.ts'
import { invalidEvent } from './classification.ts'
import { HeldCall, MAX_HELD_CALL } from './held-call.ts'

const NOTHING = Buffer.alloc(0)
/** Milliseconds after which a client that waits for a held call gets a keep-alive with the next bytes of the upstream. */
const KEEP_ALIVE_AFTER = 10_000

/** Faults of a stream after which nothing more of the stream goes to the client. */
const FAULTS = {
  error: ['upstream_cut', 'the upstream broke off the stream with an error'],
  too_long: ['upstream_invalid', 'the upstream sent an event that is too long to be translated'],
} as const

type StreamFaultKind = keyof typeof FAULTS | 'malformed'

interface FaultLocation {
  readonly kind: StreamFaultKind
  readonly error: GatewayError
  readonly start: number
  readonly end: number
}

export type OnStreamFault = (error: GatewayError) => void

export interface ContinuationStageOptions {
  readonly reader: EventReader
  /** Hides events from the client. */
  readonly filter: UsageFilter | null
  /** Records what the client gets. */
  readonly resumable: ResumableStream
  /** Translates a response that continues another response; null = the first response, which passes unchanged. */
  readonly translate: EventTranslator | null
  /** Finds the tool calls, which are held until they are complete; null = the protocol sends whole calls only. */
  readonly calls: CallReader | null
  readonly clock: Clock
  /** The keep-alive of the client's protocol. */
  readonly keepAlive: string
  /** Reserves memory for incomplete events and calls; absent = no limit. */
  readonly reserveMemory?: ReserveMemory | undefined
  /** Called in a microtask after an event that the client must not get. */
  readonly onStreamFault: OnStreamFault
}

/** Passes on only whole events and whole tool calls, so that another upstream can continue the stream. Drops an error or malformed event and what follows. */
export class ContinuationStage implements EventSink {
  /** The event that the client must not get; null = none. */
  fault: { readonly kind: StreamFaultKind; readonly bytes: Buffer } | null = null
  /** An event was too long to be held: all bytes from that event on pass at once. */
  overflowed = false
  readonly #options: ContinuationStageOptions
  readonly #held = new ChunkList()
  readonly #memory: MemoryReservation
  readonly #call: HeldCall
  #lastSentAt: number
  /** Offset of the held bytes in the stream. */
  #heldFrom = 0
  #faultLocation: FaultLocation | null = null
  #isClosed = false
  /** The stream ended in the middle of an event. */
  #isHalf = false
  /** The last event if only the blank line after it is missing; null = not the case. */
  #last: (EventContent & { readonly isHidden: boolean }) | null = null
  #translated = ''

  constructor(options: ContinuationStageOptions) {
    this.#options = options
    this.#memory = new MemoryReservation(options.reserveMemory)
    this.#call = new HeldCall(options.calls, event => this.#deliver(event))
    this.#lastSentAt = options.clock.monotonic()
  }

  event(event: StreamEvent): void {
    const { filter, translate, resumable } = this.#options
    if (this.#faultLocation !== null || this.fault !== null) return
    if (this.overflowed) {
      filter?.event(event)
    } else if (this.#isClosed) {
      this.#inspectLast(event)
    } else if (!this.#findFault(event) && filter?.event(event) !== false) {
      if (this.#call.holds(event)) return
      if (!translate && isTooLong(event)) resumable.recordOversize()
      else this.#deliver(event)
    }
  }

  /** @returns the events that are complete now, for the client */
  take(chunk: Buffer): Buffer {
    const { reader, filter, translate } = this.#options
    if (this.overflowed) return filter?.take(chunk) ?? chunk
    if (this.fault !== null) return NOTHING
    if (this.#faultLocation !== null) return this.#stopAtFault(this.#faultLocation, chunk)
    const { blockStart, offset } = reader
    if (!this.#mayHoldCall(offset)) this.#call.release()
    const open = offset - blockStart
    const { from } = this.#call
    if (open > MAX_EVENT || from === null && !this.#memory.resize(open)) {
      if (translate) return this.#stopAtFault({ kind: 'too_long', error: faultError('too_long', ''), start: blockStart, end: blockStart }, chunk)
      this.overflowed = true
      this.#memory.resize(0)
      const bytes = this.#join(chunk)
      return filter?.take(bytes) ?? bytes
    }
    const until = from ?? blockStart
    if (until === this.#heldFrom) {
      this.#hold(chunk)
      return this.#keepAlive()
    }
    return this.#passUntil(until, this.#join(chunk))
  }

  /** The stream has ended: the rest of it that the reader emits as an event is incomplete. */
  close(): void {
    this.#isClosed = true
  }

  /** @returns the rest of an ended stream. Adds the blank line after the last event if it is missing */
  rest(): Buffer {
    if (this.overflowed) return this.#options.filter?.rest() ?? NOTHING
    return this.#isHalf ? this.#passCall() : this.#passLast()
  }

  /** @returns the last event of a stream that broke if no event can follow; otherwise nothing: a continuation may repeat the event */
  takeLastEvent(): Buffer {
    const isWanted = this.#last !== null && this.#options.resumable.isLastEvent(this.#last)
    return isWanted ? this.#passLast() : NOTHING
  }

  /** @returns false = the held call is too long */
  #mayHoldCall(offset: number): boolean {
    const { from } = this.#call
    // A call is held as bytes and as text.
    return from === null || offset - from <= MAX_HELD_CALL && this.#memory.resize(2 * (offset - from))
  }

  #keepAlive(): Buffer {
    const { clock, keepAlive } = this.#options
    if (this.#call.from === null || clock.monotonic() - this.#lastSentAt < KEEP_ALIVE_AFTER) return NOTHING
    this.#lastSentAt = clock.monotonic()
    return Buffer.from(keepAlive)
  }

  /** Records or translates an event that the client gets. */
  #deliver(event: EventContent): void {
    const { translate, resumable } = this.#options
    if (translate) this.#translated += translate(event)
    else resumable.recordSent(event)
  }

  #findFault(event: StreamEvent): boolean {
    const { start, end } = event
    const isUntranslatable = this.#options.translate !== null && isTooLong(event)
    if (!isUntranslatable && looksLikeData(event)) return false
    const kind = isUntranslatable ? 'too_long' : kindOf(event)
    if (kind !== 'error' && kind !== 'malformed' && kind !== 'too_long') return false
    this.#faultLocation = { kind, error: faultError(kind, event.text), start, end }
    return true
  }

  #stopAtFault({ kind, error, start, end }: FaultLocation, chunk: Buffer): Buffer {
    const heldFrom = this.#heldFrom
    const until = this.#call.from ?? start
    this.#call.discard()
    const bytes = this.#join(chunk)
    this.fault = { kind, bytes: Buffer.from(bytes.subarray(start - heldFrom, end - heldFrom)) }
    this.#memory.resize(0)
    // Call later, because the client must first get the bytes before the fault.
    queueMicrotask(() => this.#options.onStreamFault(error))
    return this.#passOn(bytes.subarray(0, until - heldFrom), heldFrom)
  }

  /** Passes on the bytes before an offset, and holds the rest. @param bytes the bytes from `#heldFrom` on */
  #passUntil(until: number, bytes: Buffer): Buffer {
    const start = this.#heldFrom
    this.#heldFrom = until
    this.#hold(bytes.subarray(until - start))
    return this.#passOn(bytes.subarray(0, until - start), start)
  }

  /** @returns the whole events of a call that the upstream did not complete */
  #passCall(): Buffer {
    const { from, end } = this.#call
    if (from === null) return NOTHING
    this.#call.release()
    return this.#passUntil(end, this.#join(NOTHING))
  }

  /** @param bytes whole events @param start offset of `bytes` in the stream */
  #passOn(bytes: Buffer, start: number): Buffer {
    const { clock, filter, translate } = this.#options
    this.#lastSentAt = clock.monotonic()
    if (!translate) return filter?.withoutHidden(bytes, start) ?? bytes
    const translated = Buffer.from(this.#translated)
    this.#translated = ''
    return translated
  }

  #inspectLast(event: StreamEvent): void {
    const { text, value, terminated, oversize, start } = event
    this.#isHalf = !terminated && !oversize && text !== '[DONE]' && value === undefined
    if (this.#isHalf) return
    if (!looksLikeData(event) && kindOf(event, true) === 'error') {
      this.fault = { kind: 'error', bytes: withLineEnds(this.#join(NOTHING).subarray(start - this.#heldFrom)) }
      this.#call.discard()
      return
    }
    this.#last = { text, value, isHidden: this.#options.filter?.event(event) === false }
  }

  #passLast(): Buffer {
    const call = this.#passCall()
    const bytes = this.#join(NOTHING)
    if (bytes.length === 0 || this.#last?.isHidden) return call
    const { translate, resumable } = this.#options
    if (translate) return Buffer.concat([call, Buffer.from(this.#last ? translate(this.#last) : '')])
    if (this.#last) resumable.recordSent(this.#last)
    return Buffer.concat([call, withLineEnds(bytes)])
  }

  /** Copies the bytes, because a slice would keep its whole buffer in memory. */
  #hold(bytes: Buffer): void {
    if (bytes.length > 0) this.#held.push(ownCopy(bytes))
  }

  /** @returns the held bytes followed by `bytes` */
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

/** @param text data of the event */
function faultError(kind: StreamFaultKind, text: string): GatewayError {
  if (kind === 'malformed') return invalidEvent(text)
  const [code, message] = FAULTS[kind]
  return new GatewayError(code, message)
}
