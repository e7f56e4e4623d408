import type { Limits } from '../config/types.ts'
import { Slots } from '../base/slots.ts'
import type { LocalLimiter } from './limiter.ts'
import type { Loan } from './quota-lease.ts'
import type { Answers, LentSize, Reply, Request } from './messages.ts'
import type { Admission, Ask, LimitedKey, Reservation } from './types.ts'

/** What all windows share. */
export interface Desk {
  /** The one object for these limits of this key. */
  key(name: string, limits: Limits | null): LimitedKey
  /** Puts defaults in force. */
  configure(limits: Limits | null): void
  /** Asks the limiter; it may take until others have repaid what they borrowed. */
  admit(ask: Ask, decide: (admission: Admission) => void): void
  /** @returns null while somebody waits for loans of that key, and where too little is free */
  lend(ask: Ask, most: number, callIn: () => void): OutLoan | null
}

/** A loan that some worker has. */
export interface OutLoan {
  readonly loan: Loan
  /** Tells who has it to repay it now. */
  callIn(): void
  /** It has been repaid. */
  returned(): void
}

/** What one worker has open at the desk. */
export class LimitsWindow {
  readonly #desk: Desk
  readonly #limiter: LocalLimiter
  readonly #send: (answers: Answers) => void
  readonly #keys = new Map<number, LimitedKey>()
  /** At the ids that the worker gives them, which are small numbers. */
  readonly #open: (Reservation | null)[] = []
  readonly #loans = new Slots<OutLoan>()
  #replies: Reply[] = []
  #called: number[] = []
  #isClosed = false

  constructor(desk: Desk, limiter: LocalLimiter, send: (answers: Answers) => void) {
    this.#desk = desk
    this.#limiter = limiter
    this.#send = send
  }

  /** Does what was asked. What is answered at once goes out together. */
  take(requests: readonly Request[]): void {
    // What it said before it went can be read after, when all that it had counts as used.
    if (this.#isClosed) return
    for (const request of requests) {
      switch (request.kind) {
        case 'key':
          this.#learn(request)
          break
        case 'admit':
          this.#admit(request)
          break
        case 'repay':
          this.#repaid(request)
          break
        case 'leave':
          this.#open[request.id]?.leave()
          break
        case 'settle':
          this.#settle(request)
          break
        case 'restore':
          this.#limiter.restoreSpend(request.rows.map(row => ({ ...row, key: this.#key(row.ref) })))
          break
        case 'defaults':
          this.#desk.configure(request.limits)
      }
    }
  }

  /**
   * The worker has gone, and with it what it knew. Its requests run no more; what
   * they used nobody knows, and so what was set aside for them counts as used: a
   * budget is never overspent by a worker's death.
   */
  close(): void {
    this.#isClosed = true
    for (const reservation of this.#open.splice(0)) reservation?.settle({ tokens: null, pico: null })
    for (const { loan, returned } of this.#loans) {
      const { requests, tokens, pico } = loan.size
      loan.repay({ requests, tokens: tokens ?? 0, pico: pico ?? 0n, open: [] })
      returned()
    }
  }

  #learn({ ref, name, limits }: Request & { kind: 'key' }): void {
    const key = this.#desk.key(name, limits)
    this.#keys.set(ref, key)
    this.#limiter.lapse(key)
  }

  #admit({ id, ref, model, tokens, pico, soon }: Request & { kind: 'admit' }): void {
    const key = this.#key(ref)
    const ask = { key, model, estimate: { tokens, pico } }
    this.#desk.admit(ask, admission => {
      if (this.#isClosed) {
        if (admission.ok) admission.reservation.release()
        return
      }
      if (admission.ok) this.#open[id] = admission.reservation
      const figures = this.#limiter.figures(key, model)
      const loan = admission.ok && soon > 0 ? this.#lend(ask, soon) : null
      this.#replies.push({ id, refusal: admission.ok ? null : admission.refusal, figures, loan })
      this.#answer()
    })
  }

  #lend(ask: Ask, most: number): LentSize | null {
    let isCalled = false
    const out = this.#desk.lend(ask, most, () => {
      if (isCalled) return
      isCalled = true
      this.#called.push(number)
      this.#answer()
    })
    if (out === null) return null
    const number = this.#loans.add(out)
    return { loan: number, ...out.loan.size, lifetimeMs: out.loan.lifetimeMs }
  }

  #repaid({ loan: number, open, ...used }: Request & { kind: 'repay' }): void {
    const out = this.#loans.at(number)
    if (out === null) return
    this.#loans.delete(number)
    out.loan.repay({ ...used, open }).forEach((reservation, n) => {
      const { id, runs } = open[n] as (typeof open)[number]
      this.#open[id] = reservation
      if (!runs) reservation.leave()
    })
    out.returned()
  }

  #settle({ ids, tokens, picos }: Request & { kind: 'settle' }): void {
    for (const [n, id] of ids.entries()) {
      this.#open[id]?.settle({ tokens: tokens[n] ?? null, pico: picos[n] ?? null })
      this.#open[id] = null
    }
  }

  /** Sends what there is to say when this turn's work is done. */
  #answer(): void {
    if (this.#replies.length + this.#called.length > 1) return
    queueMicrotask(() => {
      const answers = { replies: this.#replies, called: this.#called }
      this.#replies = []
      this.#called = []
      this.#send(answers)
    })
  }

  #key(ref: number): LimitedKey {
    const key = this.#keys.get(ref)
    if (key === undefined) throw new Error(`the worker never said which key ${ref} is`)
    return key
  }
}
