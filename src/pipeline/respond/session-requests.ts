import { MemoryReservation } from '../../base/memory-reservation.ts'
import type { ReserveMemory } from '../../base/memory-reservation.ts'
import { readMessageInfo } from '../../protocols/endpoint/message-info.ts'
import type { SocketSession } from '../../protocols/endpoint/protocol.ts'
import { estimateTokens } from '../../protocols/request/request-estimate.ts'

/** Maximum waiting requests; further ones are not kept. */
const MAX_PENDING = 256

/** A request that waits for its response. */
export interface PendingRequest {
  readonly body: Buffer
  /** null = the request names none. */
  readonly model: string | null
  /** Tokens of the request, estimated as in the reserve phase. */
  readonly estimatedInput: number
}

/** The requests of a WebSocket client of the responses protocol, until each has its response. */
export class PendingRequests {
  readonly #byLane = new Map<string, PendingRequest[]>()
  readonly #session: SocketSession
  readonly #memory: MemoryReservation
  #count = 0
  #bytes = 0

  constructor(session: SocketSession, reserveMemory: ReserveMemory) {
    this.#session = session
    this.#memory = new MemoryReservation(reserveMemory)
  }

  /** Lanes with a waiting request. */
  get lanes(): readonly string[] {
    return [...this.#byLane.keys()]
  }

  /**
   * @param message of the client; it is not kept if it is not a request, or if there is no memory for it
   * @returns true if it is kept
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

  /** The request that has waited longest in the lane; null = none waits. */
  first(lane: string): PendingRequest | null {
    return this.#byLane.get(lane)?.[0] ?? null
  }

  /** Removes the request that has waited longest in the lane; null = none waits. */
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
