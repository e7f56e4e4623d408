import type { ActualUsage, Reservation } from '../../limits/types.ts'

/** Throws if the upstream must not get the message. @returns a promise if the check is asynchronous */
export type MessageCheck = (message: Buffer) => Promise<void> | null

/** The rules for the messages of a WebSocket's client. */
export interface SessionRules {
  /** null = no check is needed. */
  readonly check: MessageCheck | null
  /** null = the responses reserve nothing. */
  readonly reservations: SessionReservations | null
}

/** Maximum responses that are reserved and have not ended. */
const MAX_OPEN = 1000

export interface HeldReservation {
  readonly reservation: Reservation
  /** The session's `sentTokens` when the response was requested. */
  readonly sentTokens: number
}

/** The reservations of a WebSocket session, until each response has ended. */
export class SessionReservations {
  /** Maximum number of tokens that the client has sent so far. */
  sentTokens = 0
  #settledTokens = 0
  #settledPico = 0n
  /** Tokens that the largest response so far has read and written. */
  #contextTokens = 0
  /** `sentTokens` when the largest response was requested. */
  #contextSentTokens = 0
  readonly #byLane = new Map<string, HeldReservation[]>()
  #open = 0
  #isClosed = false

  /** Responses that are reserved or wait for their reservation. */
  get open(): number {
    return this.#open
  }

  get isFull(): boolean {
    return this.#open >= MAX_OPEN
  }

  /** Tokens that the next response may read of the responses before it. */
  get contextTokens(): number {
    return this.#contextTokens
  }

  /** Tokens that the client has sent since the largest response was requested. */
  get unreadTokens(): number {
    return this.sentTokens - this.#contextSentTokens
  }

  /** The response waits for its reservation: `add` or `refused` follows. */
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

  /** A response has ended. @returns the reservation of the lane, or else the oldest reservation */
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

  /** @param isUnknown the usage of open responses is unknown: their reservations count as used */
  close(isUnknown: boolean): void {
    this.#isClosed = true
    for (const { reservation } of [...this.#byLane.values()].flat()) {
      if (isUnknown) reservation.settle({ tokens: null, pico: null })
      else reservation.release()
    }
    this.#byLane.clear()
  }

  /** The usage of the session that its responses have not settled. */
  unsettled({ tokens, pico }: ActualUsage): ActualUsage {
    return {
      tokens: tokens === null ? null : Math.max(0, tokens - this.#settledTokens),
      pico: pico === null ? null : pico > this.#settledPico ? pico - this.#settledPico : 0n,
    }
  }
}
