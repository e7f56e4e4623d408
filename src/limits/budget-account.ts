import type { Budget } from '../config/key-types.ts'

/** Spent and reserved picodollars (1e-12 USD) in one period of a budget. Times are ms since 1970. */
export interface Period {
  /** Inclusive. */
  readonly start: number
  /** Exclusive. */
  readonly end: number
  spent: bigint
  reserved: bigint
}

/** Milliseconds for retry-after if running requests reserve the rest of the budget. A guess, because their ends are unknown. */
export const IN_FLIGHT_RETRY_MS = 1000

const DAY_MS = 86_400_000

/** Maximum number of periods in memory, including the current period. */
const PERIODS_KEPT = 4

/**
 * Spend and reservations of a budget by period. A cost counts in the period in which the request began, even if it is settled later. Some
 * past periods are kept in case the date is set back. If the date is set back to a period that was not kept, that period starts with the
 * spend of the next period.
 */
export class BudgetAccount {
  readonly per: Budget['per']
  /** Picodollars for each period. The owner of the account can change it at any time. */
  limit: bigint
  readonly #periods: Period[]
  #current: Period
  /** true = past spend from the ledger is ignored. */
  #isRestoreClosed = false
  /** true = the budget was suspended, so the account lacks the spend since then. */
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

  /** @returns picodollars that can be spent at `now` (ms since 1970); negative if the limit is exceeded */
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

  /** Suspends the budget: the account counts no spend until `restore` adds past spend. */
  suspend(): void {
    this.#isRestoreClosed = false
    this.#stale = true
  }

  /**
   * Adds past spend in picodollars. After a suspension, the first call replaces the account's spend.
   * @returns false, and adds nothing, after `reserve` or `closeRestore` was called
   */
  restore(pico: bigint, startedAt: number): boolean {
    if (this.#isRestoreClosed) return false
    if (this.#stale) for (const period of this.#periods) period.spent = 0n
    this.#stale = false
    this.#find(startedAt).spent += pico
    this.#trim()
    return true
  }

  /** Call this when all past spend is restored. Later past spend is ignored. */
  closeRestore(): void {
    if (this.#isRestoreClosed) return
    this.#isRestoreClosed = true
    // Without spend in the current period, the date may have been set back while the gateway was stopped.
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
    // Do not add a period that is older than all kept ones, because the latest period would be removed for it.
    const isBeyondMemory = oldest !== undefined && this.#periods.length === PERIODS_KEPT && now < oldest.start
    return isBeyondMemory ? oldest : this.#find(now)
  }

  /** Copies the next period's spend to an older period, because setting back the date must not renew the budget. */
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
