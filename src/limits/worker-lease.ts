import { Slots } from '../base/slots.ts'
import { counted, estimated } from './amounts.ts'
import type { LentSize, Request } from './messages.ts'
import type { Estimate, Outcome, Reservation } from './types.ts'

/** What an admitted request holds in a worker: as part of a loan, or at a number of its own. */
export class Held implements Reservation {
  readonly estimate: Estimate
  /** Where its end is told; null once it has been. */
  #holder: Holder | null = null
  /** Its place there. */
  #at = 0
  #runs = true

  constructor(estimate: Estimate) {
    this.estimate = estimate
  }

  get runs(): boolean {
    return this.#runs
  }

  /** From now on its end is told there. */
  move(holder: Holder, at: number): void {
    this.#holder = holder
    this.#at = at
  }

  leave(): void {
    if (!this.#runs) return
    this.#runs = false
    this.#holder?.left(this.#at)
  }

  settle(outcome: Outcome): void {
    const holder = this.#holder
    this.#holder = null
    this.#runs = false
    holder?.settled(this.#at, outcome)
  }

  release(): void {
    this.settle({ tokens: 0, pico: 0n })
  }
}

/** Who is told of the end of a request. */
export interface Holder {
  /** It runs no more, and is settled later. */
  left(at: number): void
  settled(at: number, outcome: Outcome): void
}

/** What has been used of a loan, or of its time, when it is time to ask for the next. */
const LOW = 3 / 4

/** A loan in the hands of the worker that has it: requests are admitted on it, and its use is summed up. */
export class Borrowed implements Holder {
  /** Its number. */
  readonly loan: number
  readonly #until: number
  readonly #lowFrom: number
  readonly #requests: number
  #tokens: number | null
  #pico: bigint | null
  #admitted = 0
  #takenTokens = 0
  #usedPico = 0n
  readonly #open = new Slots<Held>()

  /** @param now milliseconds of a monotonic clock */
  constructor({ loan, requests, tokens, pico, lifetimeMs }: LentSize, now: number) {
    this.loan = loan
    this.#until = now + lifetimeMs
    this.#lowFrom = now + lifetimeMs * LOW
    this.#requests = requests
    this.#tokens = tokens
    this.#pico = pico
  }

  /** How many requests were admitted on it. */
  get admitted(): number {
    return this.#admitted
  }

  get isMostlyUsed(): boolean {
    return this.#admitted >= this.#requests * LOW
  }

  isLow(now: number): boolean {
    return this.isMostlyUsed || now >= this.#lowFrom
  }

  /** What those used that have ended, and the worst cases of the others. */
  get takenTokens(): number {
    return this.#takenTokens
  }

  /** Admits a request, if what is left is enough for it. @returns null if it is not */
  admit(estimate: Estimate, now: number): Held | null {
    if (this.#admitted === this.#requests || now >= this.#until) return null
    const worst = estimated(estimate)
    const { tokens, pico } = worst
    if (this.#tokens !== null && tokens > this.#tokens) return null
    if (this.#pico !== null && (pico === null || pico > this.#pico)) return null
    this.#admitted++
    this.#takenTokens += tokens
    if (this.#tokens !== null) this.#tokens -= tokens
    if (this.#pico !== null) this.#pico -= pico ?? 0n
    const held = new Held(worst)
    held.move(this, this.#open.add(held))
    return held
  }

  /** Its turn goes back with the loan. */
  left(): void {}

  settled(at: number, outcome: Outcome): void {
    const held = this.#open.at(at)
    if (held === null) return
    this.#open.delete(at)
    const { tokens, pico } = counted(outcome)
    if (tokens !== null) this.#takenTokens += tokens - held.estimate.tokens
    this.#usedPico += pico ?? held.estimate.pico ?? 0n
  }

  /** Ends the loan: those still open are told elsewhere from now on, each at the number that it gets. */
  close(holder: Holder, numberOf: (held: Held) => number): Request & { kind: 'repay' } {
    let usedTokens = this.#takenTokens
    const open = Array.from(this.#open, held => {
      const id = numberOf(held)
      held.move(holder, id)
      const { tokens, pico } = held.estimate
      usedTokens -= tokens
      return { id, tokens, pico, runs: held.runs }
    })
    const used = { requests: this.#admitted, tokens: usedTokens, pico: this.#usedPico }
    return { kind: 'repay', loan: this.loan, ...used, open }
  }
}
