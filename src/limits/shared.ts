import type { Clock } from '../base/clock.ts'
import type { Limits } from '../config/types.ts'
import { Slots } from '../base/slots.ts'
import { Borrowed, Held } from './worker-lease.ts'
import type { Holder } from './worker-lease.ts'
import type { Answers, LentSize, Reply, Request } from './messages.ts'
import { Outbox } from './outbox.ts'
import { Tab } from './key-model-state.ts'
import type { Admission, Ask, Estimate, Figures, LimitedKey, Limiter, Outcome, Spend } from './types.ts'
import { UNLIMITED } from './unlimited.ts'

/** Tabs of keys with models; beyond so many all are forgotten. */
const MOST_TABS = 10_000

const NO_FIGURES: Figures = Object.freeze({ requests: null, tokens: null })

export type SharedClock = Pick<Clock, 'monotonic' | 'setTimeout'>

/** A request that is not admitted yet. */
interface Waiting {
  readonly tab: KeyTab
  readonly ref: number
  readonly model: string | null
  readonly estimate: Estimate
  readonly resolve: (admission: Admission) => void
}

/** One that the limits were asked about. */
interface Asked extends Waiting {
  readonly isLoanAsked: boolean
}

type KeyTab = Tab<Waiting>

/**
 * The limiter of a worker: the limits themselves are kept in one place for all
 * workers, and asked there. Keys without limits are admitted here, at once, and so
 * are requests for which there is a loan: where many come and limits are far, few
 * of them ask.
 */
export class SharedLimiter implements Limiter, Holder {
  readonly #outbox: Outbox
  readonly #clock: SharedClock
  #defaults: Limits | null
  #refs = 0
  /** One for each name: a key whose limits change keeps its number. */
  readonly #keys = new Map<string, { limits: Limits | null; ref: number }>()
  readonly #tabs = new Map<string, KeyTab>()
  /** What was asked, and what was admitted, each at its id, until it is refused or settled. */
  readonly #open = new Slots<Asked | Held>()
  /** The tab of each loan, at the loan's number. */
  readonly #loans: (KeyTab | null)[] = []

  /**
   * @param defaults hold for every key, field by field, where it sets none of its own
   * @param send takes requests to where the limits are; what comes back goes to `receive`
   */
  constructor(
    defaults: Limits | null, clock: SharedClock, send: (requests: readonly Request[]) => void,
  ) {
    this.#outbox = new Outbox(send)
    this.#clock = clock
    this.#defaults = defaults
    this.#outbox.post({ kind: 'defaults', limits: defaults })
  }

  admit({ key, model, estimate }: Ask): Admission | Promise<Admission> {
    if (this.#unlimited(key)) {
      // Where its budgets are kept they have to hear that it has none now.
      if (this.#keys.get(key.name)?.limits) this.#ref(key)
      return UNLIMITED
    }
    const ref = this.#ref(key)
    const tab = this.#tab(key, model)
    const held = tab.admit(estimate, this.#clock.monotonic())
    if (held !== null) return { ok: true, reservation: held }
    const { promise, resolve } = Promise.withResolvers<Admission>()
    const waiting = { tab, ref, model, estimate, resolve }
    if (!tab.wait(waiting)) this.#ask(waiting)
    return promise
  }

  receive({ replies, called }: Answers): void {
    for (const reply of replies) this.#decide(reply)
    for (const loan of called) {
      const tab = this.#loans[loan] ?? null
      if (tab !== null) this.#repay(tab)
    }
  }

  /** As they were when this key last asked, less what was admitted on a loan that they do not count. */
  figures(key: LimitedKey, model: string | null): Figures {
    return this.#unlimited(key) ? NO_FIGURES : this.#tabs.get(nameOf(key, model))?.figures() ?? NO_FIGURES
  }

  restoreSpend(spent: Iterable<Spend>): void {
    const rows = Array.from(spent, ({ key, ...rest }) => ({ ...rest, ref: this.#ref(key) }))
    if (rows.length > 0) this.#outbox.post({ kind: 'restore', rows })
  }

  reconfigure(defaults: Limits | null): void {
    for (const [name, tab] of this.#tabs) this.#renew(name, tab, tab.limits)
    this.#defaults = defaults
    this.#outbox.post({ kind: 'defaults', limits: defaults })
  }

  left(id: number): void {
    this.#outbox.post({ kind: 'leave', id })
  }

  settled(id: number, outcome: Outcome): void {
    this.#open.delete(id)
    this.#outbox.settled(id, outcome)
  }

  #ask(waiting: Waiting): void {
    const { tab, ref, model, estimate: { tokens, pico } } = waiting
    const soon = tab.ask(this.#clock.monotonic())
    const id = this.#open.add({ ...waiting, isLoanAsked: soon > 0 })
    this.#outbox.post({ kind: 'admit', id, ref, model, tokens, pico, soon })
  }

  #decide({ id, refusal, figures, loan }: Reply): void {
    const asked = this.#open.at(id)
    if (asked === null || asked instanceof Held) return
    const { tab, estimate, isLoanAsked, resolve } = asked
    tab.answered(figures)
    if (loan !== null) this.#borrow(tab, loan)
    if (refusal === null) {
      const held = new Held(estimate)
      held.move(this, id)
      this.#open.replace(id, held)
      resolve({ ok: true, reservation: held })
    } else {
      this.#open.delete(id)
      resolve({ ok: false, refusal })
    }
    if (isLoanAsked) for (const waiting of tab.lent(loan !== null)) this.#admitOrAsk(waiting)
  }

  #admitOrAsk(waiting: Waiting): void {
    const { tab, estimate, resolve } = waiting
    const held = tab.admit(estimate, this.#clock.monotonic())
    if (held === null) this.#ask(waiting)
    else resolve({ ok: true, reservation: held })
  }

  #borrow(tab: KeyTab, lent: LentSize): void {
    this.#repay(tab)
    const loan = new Borrowed(lent, this.#clock.monotonic())
    tab.loan = loan
    this.#loans[lent.loan] = tab
    this.#clock.setTimeout(() => {
      if (tab.loan === loan) this.#repay(tab)
    }, lent.lifetimeMs)
  }

  #repay(tab: KeyTab): void {
    const { loan } = tab
    if (loan === null) return
    tab.repaid(loan)
    this.#loans[loan.loan] = null
    this.#outbox.post(loan.close(this, held => this.#open.add(held)))
  }

  #forget(): void {
    for (const tab of this.#tabs.values()) this.#repay(tab)
    this.#tabs.clear()
  }

  #unlimited(key: LimitedKey): boolean {
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

  #tab(key: LimitedKey, model: string | null): KeyTab {
    const name = nameOf(key, model)
    const known = this.#tabs.get(name)
    if (known?.limits === key.limits) return known
    if (known !== undefined) return this.#renew(name, known, key.limits)
    if (this.#tabs.size >= MOST_TABS) this.#forget()
    const tab = new Tab<Waiting>(key.limits, NO_FIGURES)
    this.#tabs.set(name, tab)
    return tab
  }

  /** What was lent under other limits, or is about to be, is nothing for these; the figures stay. */
  #renew(name: string, tab: KeyTab, limits: Limits | null): KeyTab {
    this.#repay(tab)
    const renewed = new Tab<Waiting>(limits, tab.figures())
    this.#tabs.set(name, renewed)
    return renewed
  }
}

function nameOf(key: LimitedKey, model: string | null): string {
  return `${key.name}\n${model ?? ''}`
}
