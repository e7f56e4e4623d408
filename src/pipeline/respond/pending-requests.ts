import { MemoryReservation } from '../../base/memory-reservation.ts'
import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { readMessageInfo } from '../../protocols/shared/message-info.ts'
import type { SocketSession } from '../../protocols/shared/protocol.ts'
import { estimateTokens } from '../../protocols/shared/request-estimate.ts'

/** More requests than anybody has waiting at once: those beyond are not kept. */
const MAX_PENDING = 256

/** What waits for its answer. */
export interface PendingRequest {
  readonly body: Buffer
  /** null = it names none. */
  readonly model: string | null
  /** Tokens of it, as requests are estimated at admission. */
  readonly estimatedInput: number
}

/** The requests that a client makes over a WebSocket of the responses protocol, until each is answered. */
export class PendingRequests {
  readonly #byLane = new Map<string, PendingRequest[]>()
  readonly #session: SocketSession
  readonly #memory: MemoryReservation
  #count = 0
  #bytes = 0

  constructor(session: SocketSession, room: ReserveMemory) {
    this.#session = session
    this.#memory = new MemoryReservation(room)
  }

  /** Those in which a request waits. */
  get lanes(): readonly string[] {
    return [...this.#byLane.keys()]
  }

  /**
   * @param message of the client's; what is no request, or finds no room, is not kept
   * @returns whether it is
   */
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

  /** The one that has waited longest there; null = none does. */
  first(lane: string): PendingRequest | null {
    return this.#byLane.get(lane)?.[0] ?? null
  }

  /** The one that has waited longest there, which waits no more; null = none does. */
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
