import { MemoryReservation, type ReserveMemory } from '../../base/memory-reservation.ts'
import { createStreamMeter } from '../../protocols/endpoint/create-stream-meter.ts'
import { readMessageInfo } from '../../protocols/endpoint/message-info.ts'
import type { Endpoint, SocketSession } from '../../protocols/endpoint/protocol.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import { estimateTokens } from '../../protocols/request/request-estimate.ts'

/** Maximum lanes with a running response. Further responses share the lane ''. */
const MAX_LANES = 256
/** Bytes of text that a lane keeps to count tokens if its response is interrupted. The tokens of longer text are extrapolated. */
const KEPT_TEXT_BYTES = 16 * 1024

export interface ActiveResponse {
  readonly meter: StreamMeter
  /** The model that the upstream named. */
  model: string | null
}

/** The requests and responses of a session by lane. Responses in different lanes run in parallel. '' = the lane without a name. */
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

  /** The oldest request in the lane whose response has not ended; null = none. */
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
    // If the upstream names no lanes, the event belongs to the lane of the first request.
    if (this.#upstreamNamesLanes || this.#active.has('') || this.#pending.first('') !== null) {
      return this.#active.has(named) || this.#active.size < MAX_LANES ? named : ''
    }
    return this.#pending.lanes[0] ?? ''
  }

  /** The lane of an event if each response has its own lane. @param response id; '' = the event names no response */
  laneOfResponse(response: string): string {
    // If a response without a name is running, the upstream runs one response at a time: the event belongs to that response.
    if (this.#active.has('')) return ''
    if (response === '') return this.#active.size === 1 ? this.#active.keys().next().value as string : ''
    return this.#active.has(response) || this.#active.size < MAX_LANES ? response : ''
  }

  /** The lane of an error event. An error without a lane most likely belongs to a request whose response has not begun. */
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
  /** null = the request names no model. */
  readonly model: string | null
  /** Estimated tokens of the request. */
  readonly estimatedInput: number
}

/** The client's requests in the responses protocol. Each is kept until its response has ended. */
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

  /** @returns false = the message is not a request, or cannot be kept */
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
