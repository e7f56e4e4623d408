import type { Clock } from '../base/clock.ts'
import { Slots } from '../base/slots.ts'
import type { Limits } from '../config/types.ts'
import { KeyModelState } from './key-model-state.ts'
import type { LimiterReplies, GrantedLease, AdmissionReply, LimiterRequest } from './messages.ts'
import { Outbox } from './outbox.ts'
import type { Admission, AdmissionRequest, Estimate, RateLimitStates, LimitedKey, Limiter, ActualUsage, Spend } from './types.ts'
import { UNLIMITED } from './unlimited.ts'
import { WorkerLease, WorkerReservation } from './worker-lease.ts'
import type { ReservationOwner } from './worker-lease.ts'

/** Tabs of keys with models; beyond so many all are forgotten. */
const MAX_KEY_STATES = 10_000

const NO_RATE_LIMITS: RateLimitStates = Object.freeze({ requests: null, tokens: null })

export type SharedClock = Pick<Clock, 'monotonic' | 'setTimeout'>

/** A request that is not admitted yet. */
interface WaitingAdmission {
  readonly tab: WorkerKeyState
  readonly ref: number
  readonly model: string | null
  readonly estimate: Estimate
  readonly resolve: (admission: Admission) => void
}

/** One that the limits were asked about. */
interface PendingAdmission extends WaitingAdmission {
  readonly isLeaseRequested: boolean
}

type WorkerKeyState = KeyModelState<WaitingAdmission>

/**
 * The limiter of a worker: the limits themselves are kept in one place for all
 * workers, and asked there. Keys without limits are admitted here, at once, and so
 * are requests for which there is a loan: where many come and limits are far, few
 * of them ask.
 */
export class SharedLimiter implements Limiter, ReservationOwner {
  readonly #outbox: Outbox
  readonly #clock: SharedClock
  #defaults: Limits | null
  #refs = 0
  /** One for each name: a key whose limits change keeps its number. */
  readonly #keys = new Map<string, { limits: Limits | null; ref: number }>()
  readonly #keyStates = new Map<string, WorkerKeyState>()
  /** What was asked, and what was admitted, each at its id, until it is refused or settled. */
  readonly #open = new Slots<PendingAdmission | WorkerReservation>()
  /** The tab of each loan, at the loan's number. */
  readonly #leaseStates: (WorkerKeyState | null)[] = []

  /**
   * @param defaults hold for every key, field by field, where it sets none of its own
   * @param send takes requests to where the limits are; what comes back goes to `receive`
   */
  constructor(
    defaults: Limits | null, clock: SharedClock, send: (requests: readonly LimiterRequest[]) => void,
  ) {
    this.#outbox = new Outbox(send)
    this.#clock = clock
    this.#defaults = defaults
    this.#outbox.post({ kind: 'defaults', limits: defaults })
  }

  admit({ key, model, estimate }: AdmissionRequest): Admission | Promise<Admission> {
    if (this.#isUnlimited(key)) {
      // Where its budgets are kept they have to hear that it has none now.
      if (this.#keys.get(key.name)?.limits) this.#ref(key)
      return UNLIMITED
    }
    const ref = this.#ref(key)
    const tab = this.#keyState(key, model)
    const held = tab.admit(estimate, this.#clock.monotonic())
    if (held !== null) return { ok: true, reservation: held }
    const { promise, resolve } = Promise.withResolvers<Admission>()
    const waiting = { tab, ref, model, estimate, resolve }
    if (!tab.waitForLease(waiting)) this.#requestAdmission(waiting)
    return promise
  }

  receive({ replies, called }: LimiterReplies): void {
    for (const reply of replies) this.#handleReply(reply)
    for (const loan of called) {
      const tab = this.#leaseStates[loan] ?? null
      if (tab !== null) this.#endLease(tab)
    }
  }

  /** As they were when this key last asked, less what was admitted on a loan that they do not count. */
  rateLimitStates(key: LimitedKey, model: string | null): RateLimitStates {
    return this.#isUnlimited(key) ? NO_RATE_LIMITS : this.#keyStates.get(nameOf(key, model))?.rateLimitStates() ?? NO_RATE_LIMITS
  }

  restoreSpend(spent: Iterable<Spend>): void {
    const rows = Array.from(spent, ({ key, ...rest }) => ({ ...rest, ref: this.#ref(key) }))
    if (rows.length > 0) this.#outbox.post({ kind: 'restore', rows })
  }

  reconfigure(defaults: Limits | null): void {
    for (const [name, tab] of this.#keyStates) this.#resetKeyState(name, tab, tab.limits)
    this.#defaults = defaults
    this.#outbox.post({ kind: 'defaults', limits: defaults })
  }

  concurrencyReleased(id: number): void {
    this.#outbox.post({ kind: 'leave', id })
  }

  settled(id: number, outcome: ActualUsage): void {
    this.#open.delete(id)
    this.#outbox.postSettlement(id, outcome)
  }

  #requestAdmission(waiting: WaitingAdmission): void {
    const { tab, ref, model, estimate: { tokens, pico } } = waiting
    const soon = tab.startLimiterRequest(this.#clock.monotonic())
    const id = this.#open.add({ ...waiting, isLeaseRequested: soon > 0 })
    this.#outbox.post({ kind: 'admit', id, ref, model, tokens, pico, soon })
  }

  #handleReply({ id, refusal, rateLimitStates: figures, lease: loan }: AdmissionReply): void {
    const asked = this.#open.at(id)
    if (asked === null || asked instanceof WorkerReservation) return
    const { tab, estimate, isLeaseRequested: isLoanAsked, resolve } = asked
    tab.updateRateLimitStates(figures)
    if (loan !== null) this.#startLease(tab, loan)
    if (refusal === null) {
      const held = new WorkerReservation(estimate)
      held.assignOwner(this, id)
      this.#open.replace(id, held)
      resolve({ ok: true, reservation: held })
    } else {
      this.#open.delete(id)
      resolve({ ok: false, refusal })
    }
    if (isLoanAsked) for (const waiting of tab.leaseReplied(loan !== null)) this.#admitOrAsk(waiting)
  }

  #admitOrAsk(waiting: WaitingAdmission): void {
    const { tab, estimate, resolve } = waiting
    const held = tab.admit(estimate, this.#clock.monotonic())
    if (held === null) this.#requestAdmission(waiting)
    else resolve({ ok: true, reservation: held })
  }

  #startLease(tab: WorkerKeyState, lent: GrantedLease): void {
    this.#endLease(tab)
    const loan = new WorkerLease(lent, this.#clock.monotonic())
    tab.lease = loan
    this.#leaseStates[lent.leaseId] = tab
    this.#clock.setTimeout(() => {
      if (tab.lease === loan) this.#endLease(tab)
    }, lent.lifetimeMs)
  }

  #endLease(tab: WorkerKeyState): void {
    const { lease: loan } = tab
    if (loan === null) return
    tab.leaseEnded(loan)
    this.#leaseStates[loan.leaseId] = null
    this.#outbox.post(loan.close(this, held => this.#open.add(held)))
  }

  #clearKeyStates(): void {
    for (const tab of this.#keyStates.values()) this.#endLease(tab)
    this.#keyStates.clear()
  }

  #isUnlimited(key: LimitedKey): boolean {
    return key.limits === null && this.#defaults === null
  }

  #ref({ name, limits }: LimitedKey): number {
    const known = this.#keys.get(name)
    if (known?.limits === limits) return known.ref
    const ref = known?.ref ?? ++this.#refs
    this.#keys.set(name, { limits, ref })
    this.#outbox.post({ kind: 'key', ref, name, limits })
    return ref
  }

  #keyState(key: LimitedKey, model: string | null): WorkerKeyState {
    const name = nameOf(key, model)
    const known = this.#keyStates.get(name)
    if (known?.limits === key.limits) return known
    if (known !== undefined) return this.#resetKeyState(name, known, key.limits)
    if (this.#keyStates.size >= MAX_KEY_STATES) this.#clearKeyStates()
    const tab = new KeyModelState<WaitingAdmission>(key.limits, NO_RATE_LIMITS)
    this.#keyStates.set(name, tab)
    return tab
  }

  /** What was lent under other limits, or is about to be, is nothing for these; the figures stay. */
  #resetKeyState(name: string, tab: WorkerKeyState, limits: Limits | null): WorkerKeyState {
    this.#endLease(tab)
    const renewed = new KeyModelState<WaitingAdmission>(limits, tab.rateLimitStates())
    this.#keyStates.set(name, renewed)
    return renewed
  }
}

function nameOf(key: LimitedKey, model: string | null): string {
  return `${key.name}\n${model ?? ''}`
}
