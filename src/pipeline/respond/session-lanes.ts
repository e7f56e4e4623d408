import { MemoryReservation, type ReserveMemory } from '../../base/memory-reservation.ts'
import { createStreamMeter } from '../../protocols/endpoint/create-stream-meter.ts'
import { readMessageInfo } from '../../protocols/endpoint/message-info.ts'
import type { Endpoint, SocketSession } from '../../protocols/endpoint/protocol.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import { estimateTokens } from '../../protocols/request/request-estimate.ts'

/** Maximum lanes; further responses share one lane. */
const MAX_LANES = 256
/** Bytes of text that a lane keeps in case its response is interrupted; longer text is counted by that sample. */
const KEPT_TEXT_BYTES = 16 * 1024

export interface ActiveResponse {
  readonly meter: StreamMeter
  /** The model that the upstream named. */
  model: string | null
}

/** The requests and responses of a session by lane. Lanes run in parallel; the lane without a name is ''. */
export class Lanes {
  readonly #endpoint: Endpoint
  readonly #pending: PendingRequests
  readonly #active = new Map<string, ActiveResponse>()
  #upstreamNamesLanes = false

  constructor(endpoint: Endpoint, session: SocketSession, reserveMemory: ReserveMemory) {
    this.#endpoint = endpoint
    this.#pending = new PendingRequests(session, reserveMemory)
  }

  /** Lanes with a waiting request or a running response. */
  get openLanes(): Set<string> {
    return new Set([...this.#pending.lanes, ...this.#active.keys()])
  }

  /** @returns true if the message of the client requests a response */
  addRequest(message: Buffer): boolean {
    return this.#pending.add(message)
  }

  /** The request in the lane whose response has not ended. */
  pendingRequest(lane: string): PendingRequest | null {
    return this.#pending.first(lane)
  }

  activeResponse(lane: string): ActiveResponse | null {
    return this.#active.get(lane) ?? null
  }

  begin(lane: string): ActiveResponse {
    const known = this.#active.get(lane)
    if (known !== undefined) return known
    const meter = createStreamMeter(this.#endpoint, lane === '' ? {} : { textLimit: KEPT_TEXT_BYTES })
    const begun = { meter, model: null }
    this.#active.set(lane, begun)
    return begun
  }

  /** @returns true if the response in the lane had begun */
  end(lane: string): boolean {
    this.#pending.take(lane)
    return this.#active.delete(lane)
  }

  /** @param named the name in the event; '' = none */
  laneOfEvent(named: string): string {
    this.#upstreamNamesLanes ||= named !== ''
    // If the upstream names no lanes, the event belongs to the first request.
    if (this.#upstreamNamesLanes || this.#active.has('') || this.#pending.first('') !== null) {
      return this.#active.has(named) || this.#active.size < MAX_LANES ? named : ''
    }
    return this.#pending.lanes[0] ?? ''
  }

  /** The lane in a session that has one lane per response. @param response id; '' = the event names none */
  laneOfResponse(response: string): string {
    // An upstream that does not name the response in all events runs one response at a time.
    if (this.#active.has('')) return ''
    if (response === '') return this.#active.size === 1 ? this.#active.keys().next().value as string : ''
    return this.#active.has(response) || this.#active.size < MAX_LANES ? response : ''
  }

  /** An unnamed error most likely belongs to a response that has not begun. */
  laneOfError(named: string): string {
    this.#upstreamNamesLanes ||= named !== ''
    if (this.openLanes.has(named)) return named
    return this.#pending.lanes.find(lane => !this.#active.has(lane)) ?? this.laneOfEvent(named)
  }
}

/** Maximum waiting requests; further requests are not kept. */
const MAX_PENDING = 256

export interface PendingRequest {
  readonly body: Buffer
  /** null = the request names none. */
  readonly model: string | null
  /** Tokens of the request, estimated as in the reserve phase. */
  readonly estimatedInput: number
}

/** The requests of a client of the responses protocol, until each has its response. */
class PendingRequests {
  readonly #byLane = new Map<string, PendingRequest[]>()
  readonly #session: SocketSession
  readonly #memory: MemoryReservation
  #count = 0
  #bytes = 0

  constructor(session: SocketSession, reserveMemory: ReserveMemory) {
    this.#session = session
    this.#memory = new MemoryReservation(reserveMemory)
  }

  get lanes(): readonly string[] {
    return [...this.#byLane.keys()]
  }

  /** @returns false = the message is no request, or there is no memory for it */
  add(message: Buffer): boolean {
    const { type, model, lane } = readMessageInfo(message, this.#session)
    if (type !== 'response.create' || this.#count === MAX_PENDING) return false
    if (!this.#memory.resize(this.#bytes + message.length)) return false
    this.#count++
    this.#bytes += message.length
    const waiting = this.#byLane.get(lane) ?? []
    this.#byLane.set(lane, waiting)
    waiting.push({ body: message, model, estimatedInput: estimateTokens(message) })
    return true
  }

  /** The request that has waited longest. */
  first(lane: string): PendingRequest | null {
    return this.#byLane.get(lane)?.[0] ?? null
  }

  /** Removes the request that has waited longest. */
  take(lane: string): PendingRequest | null {
    const waiting = this.#byLane.get(lane)
    const request = waiting?.shift()
    if (request === undefined) return null
    if (waiting?.length === 0) this.#byLane.delete(lane)
    this.#count--
    this.#bytes -= request.body.length
    this.#memory.resize(this.#bytes)
    return request
  }
}
