import type { ActualUsage, Reservation } from '../../limits/types.ts'

/** Checks a message of the client. Throws or rejects if the upstream must not get the message. @returns null = checked already */
export type MessageCheck = (message: Buffer) => Promise<void> | null

/** The rules for the messages of a WebSocket's client. */
export interface SessionRules {
  /** null = no check is needed. */
  readonly check: MessageCheck | null
  /** null = the responses reserve nothing. */
  readonly reservations: SessionReservations | null
}

/** Maximum responses that have a reservation or wait for one. */
const MAX_OPEN = 1000

export interface HeldReservation {
  readonly reservation: Reservation
  /** The value of `SessionReservations.sentTokens` when the response was requested. */
  readonly sentTokens: number
}

/** The reservations of a WebSocket session. Each is kept until its response has ended. */
export class SessionReservations {
  /** Upper bound of the tokens that the client has sent so far. */
  sentTokens = 0
  #settledTokens = 0
  #settledPico = 0n
  /** Tokens (input and output) of the largest response so far. */
  #contextTokens = 0
  /** `sentTokens` when the largest response was requested. */
  #contextSentTokens = 0
  readonly #byLane = new Map<string, HeldReservation[]>()
  #open = 0
  #isClosed = false

  /** Number of responses that have a reservation or wait for one. */
  get open(): number {
    return this.#open
  }

  get isFull(): boolean {
    return this.#open >= MAX_OPEN
  }

  /** Tokens of earlier responses that are input of the next response, at most. */
  get contextTokens(): number {
    return this.#contextTokens
  }

  /** Tokens that the client has sent since the largest response was requested, at most. */
  get unreadTokens(): number {
    return this.sentTokens - this.#contextSentTokens
  }

  /** Call this before reserving for a response. Call `add` or `refused` afterwards. */
  request(): void {
    this.#open++
  }

  refused(): void {
    this.#open--
  }

  add(lane: string, held: HeldReservation): void {
    if (this.#isClosed) {
      held.reservation.release()
      return
    }
    const waiting = this.#byLane.get(lane)
    if (waiting === undefined) this.#byLane.set(lane, [held])
    else waiting.push(held)
  }

  /** Removes the reservation of a response that has ended. @returns the reservation of the lane; if there is none, the oldest one */
  take(lane: string): HeldReservation | null {
    const [found] = this.#byLane.has(lane) ? [lane] : this.#byLane.keys()
    const waiting = found === undefined ? undefined : this.#byLane.get(found)
    const held = waiting?.shift()
    if (found === undefined || held === undefined) return null
    if (waiting?.length === 0) this.#byLane.delete(found)
    this.#open--
    return held
  }

  settle({ reservation, sentTokens }: HeldReservation, used: ActualUsage): void {
    reservation.settle(used)
    this.#settledTokens += used.tokens ?? 0
    this.#settledPico += used.pico ?? 0n
    if (used.tokens === null || used.tokens < this.#contextTokens) return
    this.#contextTokens = used.tokens
    this.#contextSentTokens = sentTokens
  }

  /** @param isUnknown true = the usage of open responses is unknown, so their reservations count as used; false = release them */
  close(isUnknown: boolean): void {
    this.#isClosed = true
    for (const { reservation } of [...this.#byLane.values()].flat()) {
      if (isUnknown) reservation.settle({ tokens: null, pico: null })
      else reservation.release()
    }
    this.#byLane.clear()
  }

  /** @param used usage of the whole session @returns the part of it that no response has settled */
  unsettled({ tokens, pico }: ActualUsage): ActualUsage {
    return {
      tokens: tokens === null ? null : Math.max(0, tokens - this.#settledTokens),
      pico: pico === null ? null : pico > this.#settledPico ? pico - this.#settledPico : 0n,
    }
  }
}
