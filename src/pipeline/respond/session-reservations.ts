import type { ActualUsage, Reservation } from '../../limits/types.ts'

/** Throws if the upstream must not get a message of the client. @returns a promise = that is decided later */
export type MessageCheck = (message: Buffer) => Promise<void> | null

/** What holds for the messages of a WebSocket's client. */
export interface SessionRules {
  /** null = no check is needed. */
  readonly check: MessageCheck | null
  /** What the responses reserve; null = nothing. */
  readonly reservations: SessionReservations | null
}

/** Most responses that are reserved and have not ended. */
const MAX_OPEN = 1000

/** What one response of a session has reserved. */
export interface HeldReservation {
  readonly reservation: Reservation
  /** Of the session, when the response was requested. */
  readonly sentTokens: number
}

/** What the responses of a WebSocket session have reserved, until each of them has ended. */
export class SessionReservations {
  /** Tokens that the client has sent so far, at most. */
  sentTokens = 0
  #settledTokens = 0
  #settledPico = 0n
  /** What the largest response so far has read and written. */
  #contextTokens = 0
  /** `sentTokens` when that was requested. */
  #contextSentTokens = 0
  readonly #byLane = new Map<string, HeldReservation[]>()
  #open = 0
  #isClosed = false

  /** Responses that are reserved, or wait for it. */
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

  /** A response is requested, and waits for its reservation: `add` or `refused` follows. */
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

  /** A response has ended. @returns what was reserved in its lane, or else first; null = nothing */
  take(lane: string): HeldReservation | null {
    const [found] = this.#byLane.has(lane) ? [lane] : this.#byLane.keys()
    const waiting = found === undefined ? undefined : this.#byLane.get(found)
    const held = waiting?.shift()
    if (found === undefined || held === undefined) return null
    if (waiting?.length === 0) this.#byLane.delete(found)
    this.#open--
    return held
  }

  /** Replaces what a response has reserved by what it used. */
  settle({ reservation, sentTokens }: HeldReservation, used: ActualUsage): void {
    reservation.settle(used)
    this.#settledTokens += used.tokens ?? 0
    this.#settledPico += used.pico ?? 0n
    if (used.tokens === null || used.tokens < this.#contextTokens) return
    this.#contextTokens = used.tokens
    this.#contextSentTokens = sentTokens
  }

  /** The session has ended. @param isUnknown what its responses used is not known: what they reserved counts */
  close(isUnknown: boolean): void {
    this.#isClosed = true
    for (const { reservation } of [...this.#byLane.values()].flat()) {
      if (isUnknown) reservation.settle({ tokens: null, pico: null })
      else reservation.release()
    }
    this.#byLane.clear()
  }

  /** What a session used, without what its responses have settled. */
  unsettled({ tokens, pico }: ActualUsage): ActualUsage {
    return {
      tokens: tokens === null ? null : Math.max(0, tokens - this.#settledTokens),
      pico: pico === null ? null : pico > this.#settledPico ? pico - this.#settledPico : 0n,
    }
  }
}
