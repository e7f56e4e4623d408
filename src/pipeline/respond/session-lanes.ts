import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { createStreamMeter } from '../../protocols/endpoint/create-stream-meter.ts'
import type { Endpoint, SocketSession } from '../../protocols/endpoint/protocol.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'
import { PendingRequests } from './session-requests.ts'
import type { PendingRequest } from './session-requests.ts'

/** Maximum lanes; further responses share one. */
const MAX_LANES = 256
/** Bytes of text that each lane keeps in case its response is interrupted; longer text is counted by that sample. */
const KEPT_TEXT_BYTES = 16 * 1024

/** A running response. */
export interface ActiveResponse {
  readonly meter: StreamMeter
  /** The model that the upstream named; null = none. */
  model: string | null
}

/**
 * The requests of a session's client and their responses, by lane. Lanes run in parallel. The lane without a name is
 * ''.
 */
export class Lanes {
  readonly #endpoint: Endpoint
  readonly #pending: PendingRequests
  readonly #active = new Map<string, ActiveResponse>()
  /** The upstream's events name their lanes. */
  #upstreamNamesLanes = false

  constructor(endpoint: Endpoint, session: SocketSession, reserveMemory: ReserveMemory) {
    this.#endpoint = endpoint
    this.#pending = new PendingRequests(session, reserveMemory)
  }

  /** Lanes with a waiting request or a running response. */
  get openLanes(): Set<string> {
    return new Set([...this.#pending.lanes, ...this.#active.keys()])
  }

  /** Reads a message of the client. @returns true if it requests a response */
  addRequest(message: Buffer): boolean {
    return this.#pending.add(message)
  }

  /** The request in the lane whose response has not ended; null = none. */
  pendingRequest(lane: string): PendingRequest | null {
    return this.#pending.first(lane)
  }

  /** The running response in the lane; null = none. */
  activeResponse(lane: string): ActiveResponse | null {
    return this.#active.get(lane) ?? null
  }

  /** The running response in the lane; begins one if there is none. */
  begin(lane: string): ActiveResponse {
    const known = this.#active.get(lane)
    if (known !== undefined) return known
    const meter = createStreamMeter(this.#endpoint, lane === '' ? {} : { textLimit: KEPT_TEXT_BYTES })
    const begun = { meter, model: null }
    this.#active.set(lane, begun)
    return begun
  }

  /** The response in the lane has ended. @returns true if it had begun */
  end(lane: string): boolean {
    this.#pending.take(lane)
    return this.#active.delete(lane)
  }

  /** The lane of an event. @param named the name in the event; '' = none */
  laneOfEvent(named: string): string {
    this.#upstreamNamesLanes ||= named !== ''
    // If the upstream names no lanes, the event belongs to the first request.
    if (this.#upstreamNamesLanes || this.#active.has('') || this.#pending.first('') !== null) {
      return this.#active.has(named) || this.#active.size < MAX_LANES ? named : ''
    }
    return this.#pending.lanes[0] ?? ''
  }

  /**
   * The lane of an event in a session that has one lane per response.
   *
   * @param response the id of the response; '' = the event names none
   */
  laneOfResponse(response: string): string {
    // An upstream that does not name the response in all events runs one response at a time.
    if (this.#active.has('')) return ''
    if (response === '') return this.#active.size === 1 ? this.#active.keys().next().value as string : ''
    return this.#active.has(response) || this.#active.size < MAX_LANES ? response : ''
  }

  /** The lane of an error: an unnamed error most likely belongs to a response that has not begun. */
  laneOfError(named: string): string {
    this.#upstreamNamesLanes ||= named !== ''
    if (this.openLanes.has(named)) return named
    return this.#pending.lanes.find(lane => !this.#active.has(lane)) ?? this.laneOfEvent(named)
  }
}
