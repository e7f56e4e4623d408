import type { Budget } from '../config/key-types.ts'

/** Spent and reserved picodollars (1e-12 USD) of one period of a budget; the times are ms since 1970. */
export interface Period {
  /** Inclusive. */
  readonly start: number
  /** Exclusive. */
  readonly end: number
  spent: bigint
  reserved: bigint
}

/** ms to wait if only running requests hold the budget: a guess, because their ends are unknown. */
export const IN_FLIGHT_RETRY_MS = 1000

const DAY_MS = 86_400_000

/** Including the current period. */
const PERIODS_KEPT = 4

/**
 * Spend and reservations of a budget by period. A cost belongs to the period in which its request began, whenever it is settled.
 * Some past periods are kept in case the date is set back; a period that is no longer known starts with the spend of the next one.
 */
export class BudgetAccount {
  readonly per: Budget['per']
  /** Picodollars for each period; the owner can set it at any time. */
  limit: bigint
  readonly #periods: Period[]
  #current: Period
  /** Past spend from the ledger is no longer accepted. */
  #isRestoreClosed = false
  /** The budget was suspended, so spend is missing here. */
  #stale = false

  constructor(per: Budget['per'], limit: bigint, now: number) {
    this.per = per
    this.limit = limit
    this.#current = periodOf(per, now)
    this.#periods = [this.#current]
  }

  /** @param now ms since 1970 @returns ms until `pico` can be spent: 0 = now (always for 0 picodollars), Infinity = never */
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

  /** Reserves picodollars. @param now ms since 1970 @returns the period of the reservation, for its settlement */
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
   * Adds past spend in picodollars. After a suspension, the first call replaces the spend counted here.
   * @returns false, and adds nothing, once this account has reserved something
   */
  restore(pico: bigint, startedAt: number): boolean {
    if (this.#isRestoreClosed) return false
    if (this.#stale) for (const period of this.#periods) period.spent = 0n
    this.#stale = false
    this.#find(startedAt).spent += pico
    this.#trim()
    return true
  }

  /** No more past spend follows. */
  closeRestore(): void {
    if (this.#isRestoreClosed) return
    this.#isRestoreClosed = true
    // The date was set back while the gateway was stopped.
    if (isUnused(this.#current)) this.#carryBack(this.#current)
  }

  idle(): boolean {
    return this.#periods.every(isUnused)
  }

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
    // Adding an older period would drop the latest one.
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

/** An empty period that contains `now` (ms since 1970). */
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
