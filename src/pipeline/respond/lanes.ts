import type { TakeRoom } from '../../base/memory-reservation.ts'
import { createStreamMeter } from '../../protocols/stream-meter.ts'
import type { StreamMeter } from '../../protocols/stream-meter.ts'
import type { EndpointName } from '../../protocols/shared/names.ts'
import { Asked } from './pending-requests.ts'
import type { Request } from './pending-requests.ts'

/** More responses at once than anybody makes: those beyond are taken for one. */
const MOST = 256
/** Bytes of text that each keeps in case it breaks off; longer ones are counted by that sample. */
const KEPT = 16 * 1024

/** A response that is under way. */
export interface Underway {
  readonly meter: StreamMeter
  /** As the upstream has named it; null = it has not. */
  model: string | null
}

/**
 * What a session's client has asked for and what the upstream is making of it, by the lanes in which
 * that goes on beside each other. The one without a name is ''.
 */
export class Lanes {
  readonly #endpoint: EndpointName
  readonly #asked: Asked
  readonly #underway = new Map<string, Underway>()
  /** The upstream tells of lanes. */
  #areNamed = false

  constructor(endpoint: EndpointName, room: TakeRoom) {
    this.#endpoint = endpoint
    this.#asked = new Asked(room)
  }

  /** Those in which something is asked for or under way. */
  get open(): Set<string> {
    return new Set([...this.#asked.lanes, ...this.#underway.keys()])
  }

  /** Takes a message of the client's. @returns whether it asks for a response */
  ask(message: Buffer): boolean {
    return this.#asked.put(message)
  }

  /** What has been asked for there, and is not over; null = nothing. */
  asked(lane: string): Request | null {
    return this.#asked.first(lane)
  }

  /** null = nothing is. */
  underway(lane: string): Underway | null {
    return this.#underway.get(lane) ?? null
  }

  /** The response under way there, which begins if there was none. */
  begin(lane: string): Underway {
    const known = this.#underway.get(lane)
    if (known !== undefined) return known
    const meter = createStreamMeter(this.#endpoint, lane === '' ? {} : { keep: KEPT })
    const begun = { meter, model: null }
    this.#underway.set(lane, begun)
    return begun
  }

  /** What was asked for there is over. @returns whether it had begun */
  end(lane: string): boolean {
    this.#asked.take(lane)
    return this.#underway.delete(lane)
  }

  /** The lane of an event. @param named as the event names it; '' = it does not */
  of(named: string): string {
    this.#areNamed ||= named !== ''
    // Of an upstream that names none, that of what was asked for first.
    if (this.#areNamed || this.#underway.has('') || this.#asked.first('') !== null) {
      return this.#underway.has(named) || this.#underway.size < MOST ? named : ''
    }
    return this.#asked.lanes[0] ?? ''
  }

  /**
   * The lane of an event in a session whose responses are the lanes.
   *
   * @param response its id; '' = the event does not name it
   */
  ofResponse(response: string): string {
    // Of an upstream that does not name them everywhere there is one at a time.
    if (this.#underway.has('')) return ''
    if (response === '') return this.#underway.size === 1 ? this.#underway.keys().next().value as string : ''
    return this.#underway.has(response) || this.#underway.size < MOST ? response : ''
  }

  /** The lane of an error: one that names none is rather of what has not begun. */
  ofError(named: string): string {
    this.#areNamed ||= named !== ''
    if (this.open.has(named)) return named
    return this.#asked.lanes.find(lane => !this.#underway.has(lane)) ?? this.of(named)
  }
}
