import type { ReserveMemory } from '../../base/memory-reservation.ts'
import type { Endpoint, SocketSession } from '../../protocols/shared/protocol.ts'
import { createStreamMeter } from '../../protocols/shared/stream-meter.ts'
import type { StreamMeter } from '../../protocols/shared/stream-meter.ts'
import { PendingRequests } from './pending-requests.ts'
import type { PendingRequest } from './pending-requests.ts'

/** More responses at once than anybody makes: those beyond are taken for one. */
const MAX_LANES = 256
/** Bytes of text that each keeps in case it breaks off; longer ones are counted by that sample. */
const KEPT_TEXT_BYTES = 16 * 1024

/** A response that is under way. */
export interface ActiveResponse {
  readonly meter: StreamMeter
  /** As the upstream has named it; null = it has not. */
  model: string | null
}

/**
 * What a session's client has asked for and what the upstream is making of it, by the lanes in which
 * that goes on beside each other. The one without a name is ''.
 */
export class Lanes {
  readonly #endpoint: Endpoint
  readonly #pending: PendingRequests
  readonly #active = new Map<string, ActiveResponse>()
  /** The upstream tells of lanes. */
  #upstreamNamesLanes = false

  constructor(endpoint: Endpoint, session: SocketSession, room: ReserveMemory) {
    this.#endpoint = endpoint
    this.#pending = new PendingRequests(session, room)
  }

  /** Those in which something is asked for or under way. */
  get openLanes(): Set<string> {
    return new Set([...this.#pending.lanes, ...this.#active.keys()])
  }

  /** Takes a message of the client's. @returns whether it asks for a response */
  addRequest(message: Buffer): boolean {
    return this.#pending.add(message)
  }

  /** What has been asked for there, and is not over; null = nothing. */
  pendingRequest(lane: string): PendingRequest | null {
    return this.#pending.first(lane)
  }

  /** null = nothing is. */
  activeResponse(lane: string): ActiveResponse | null {
    return this.#active.get(lane) ?? null
  }

  /** The response under way there, which begins if there was none. */
  begin(lane: string): ActiveResponse {
    const known = this.#active.get(lane)
    if (known !== undefined) return known
    const meter = createStreamMeter(this.#endpoint, lane === '' ? {} : { textLimit: KEPT_TEXT_BYTES })
    const begun = { meter, model: null }
    this.#active.set(lane, begun)
    return begun
  }

  /** What was asked for there is over. @returns whether it had begun */
  end(lane: string): boolean {
    this.#pending.take(lane)
    return this.#active.delete(lane)
  }

  /** The lane of an event. @param named as the event names it; '' = it does not */
  laneOfEvent(named: string): string {
    this.#upstreamNamesLanes ||= named !== ''
    // Of an upstream that names none, that of what was asked for first.
    if (this.#upstreamNamesLanes || this.#active.has('') || this.#pending.first('') !== null) {
      return this.#active.has(named) || this.#active.size < MAX_LANES ? named : ''
    }
    return this.#pending.lanes[0] ?? ''
  }

  /**
   * The lane of an event in a session whose responses are the lanes.
   *
   * @param response its id; '' = the event does not name it
   */
  laneOfResponse(response: string): string {
    // Of an upstream that does not name them everywhere there is one at a time.
    if (this.#active.has('')) return ''
    if (response === '') return this.#active.size === 1 ? this.#active.keys().next().value as string : ''
    return this.#active.has(response) || this.#active.size < MAX_LANES ? response : ''
  }

  /** The lane of an error: one that names none is rather of what has not begun. */
  laneOfError(named: string): string {
    this.#upstreamNamesLanes ||= named !== ''
    if (this.openLanes.has(named)) return named
    return this.#pending.lanes.find(lane => !this.#active.has(lane)) ?? this.laneOfEvent(named)
  }
}
