import type { Budget } from '../config/key-types.ts'

/** What is spent and reserved in one period of a budget, in picodollars (1e-12 USD). */
export interface Period {
  /** Inclusive, ms since 1970. */
  readonly start: number
  /** Exclusive, ms since 1970. */
  readonly end: number
  spent: bigint
  reserved: bigint
}

/** ms after which to retry when only running requests hold the budget: a guess, because their ends are unknown. */
export const IN_FLIGHT_RETRY_MS = 1000

const DAY_MS = 86_400_000

/** Periods that are kept, the current one included. */
const PERIODS_KEPT = 4

/**
 * A budget over time: what is spent and reserved of each period. A cost belongs to the
 * period in which its request began, whenever it is settled. Periods are remembered for
 * a while after their end, for a date that is set back: a period that is not remembered
 * begins as spent as the next later one.
 */
export class BudgetAccount {
  readonly per: Budget['per']
  /** Picodollars for each period; can change at any time. */
  limit: bigint
  /** Ascending. */
  readonly #periods: Period[]
  #current: Period
  /** The restore from the ledger has ended: later past spend is ignored. */
  #isRestoreClosed = false
  /** The budget was suspended, so this account does not have all spend. */
  #stale = false

  /** @param now - ms since 1970 */
  constructor(per: Budget['per'], limit: bigint, now: number) {
    this.per = per
    this.limit = limit
    this.#current = periodOf(per, now)
    this.#periods = [this.#current]
  }

  /**
   * @param pico picodollars (1e-12 USD)
   * @param now ms since 1970
   * @returns ms until `pico` can be spent: 0 = now, Infinity = never; 0 picodollars can always be spent
   */
  wait(pico: bigint, now: number): number {
    if (pico === 0n) return 0
    const { spent, reserved, end } = this.periodAt(now)
    if (spent + reserved + pico <= this.limit) return 0
    if (pico > this.limit) return Infinity
    const renewal = end - now
    return spent + pico <= this.limit ? Math.min(IN_FLIGHT_RETRY_MS, renewal) : renewal
  }

  /** @returns picodollars that can be spent at `now` (ms since 1970); below 0 where the limit is exceeded */
  free(now: number): bigint {
    const { spent, reserved } = this.periodAt(now)
    return this.limit - spent - reserved
  }

  /**
   * Reserves an amount of the budget.
   * @param pico picodollars
   * @param now ms since 1970
   * @returns the period that it is reserved in, for its settlement
   */
  reserve(pico: bigint, now: number): Period {
    if (!this.#isRestoreClosed) this.closeRestore()
    const period = this.periodAt(now)
    period.reserved += pico
    return period
  }

  /** Suspends the budget: it counts no spend until past spend is restored. */
  suspend(): void {
    this.#isRestoreClosed = false
    this.#stale = true
  }

  /**
   * Adds what was spent before this account began, or came back into force. In the
   * latter case that replaces what it has itself.
   * @param pico picodollars
   * @param startedAt ms since 1970
   * @returns false, and adds nothing, once it has reserved something
   */
  restore(pico: bigint, startedAt: number): boolean {
    if (this.#isRestoreClosed) return false
    if (this.#stale) for (const period of this.#periods) period.spent = 0n
    this.#stale = false
    this.#find(startedAt).spent += pico
    this.#trim()
    return true
  }

  /** Past spend is complete. */
  closeRestore(): void {
    if (this.#isRestoreClosed) return
    this.#isRestoreClosed = true
    // The gateway started with an earlier date than the last time.
    if (isUnused(this.#current)) this.#carryBack(this.#current)
  }

  /** Whether no period has spend or reservations. */
  idle(): boolean {
    return this.#periods.every(isUnused)
  }

  /** The period that counts at `now`, ms since 1970. */
  periodAt(now: number): Period {
    if (!covers(this.#current, now)) {
      const previous = this.#current
      this.#current = this.#open(now)
      const wasSetBack = this.#current.start < previous.start
      if (wasSetBack && isUnused(this.#current)) this.#carryBack(this.#current)
      this.#trim()
    }
    return this.#current
  }

  #open(now: number): Period {
    const [oldest] = this.#periods
    // Keeping this older period would drop the latest one.
    const isBeyondMemory = oldest !== undefined && this.#periods.length === PERIODS_KEPT && now < oldest.start
    return isBeyondMemory ? oldest : this.#find(now)
  }

  /** A clock that goes back must not renew the budget. */
  #carryBack(period: Period): void {
    const next = this.#periods[this.#periods.indexOf(period) + 1]
    if (next !== undefined) period.spent = next.spent + next.reserved
  }

  #find(now: number): Period {
    const known = this.#periods.find(period => covers(period, now))
    if (known !== undefined) return known
    const period = periodOf(this.per, now)
    this.#periods.push(period)
    this.#periods.sort((a, b) => a.start - b.start)
    return period
  }

  #trim(): void {
    while (this.#periods.length > PERIODS_KEPT) {
      const [oldest] = this.#periods
      if (oldest === this.#current) this.#periods.pop()
      else this.#periods.shift()
    }
  }
}

function isUnused({ spent, reserved }: Period): boolean {
  return spent === 0n && reserved === 0n
}

function covers({ start, end }: Period, now: number): boolean {
  return now >= start && now < end
}

/** An empty period of a budget. @param now ms since 1970, in the period */
export function periodOf(per: Budget['per'], now: number): Period {
  const open = { spent: 0n, reserved: 0n }
  if (per === 'total') return { start: -Infinity, end: Infinity, ...open }
  if (per === 'day') {
    const start = Math.floor(now / DAY_MS) * DAY_MS
    return { start, end: start + DAY_MS, ...open }
  }
  const date = new Date(now)
  const year = date.getUTCFullYear()
  const month = date.getUTCMonth()
  return { start: Date.UTC(year, month, 1), end: Date.UTC(year, month + 1, 1), ...open }
}
