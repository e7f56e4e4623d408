import type { Budget } from '../config/types.ts'

/** What was spent, and what is reserved, of one period of a budget; 1e-12 USD. */
export interface Period {
  /** From here on, ms since 1970. */
  readonly start: number
  /** Up to here, exclusive. */
  readonly end: number
  spent: bigint
  reserved: bigint
}

/** When to ask again if only running requests are in the way: a guess, as nobody knows their ends. */
export const IN_FLIGHT_RETRY_MS = 1000

const DAY_MS = 86_400_000

/** How many periods are remembered, the current one included. */
const PERIODS_KEPT = 4

/**
 * A budget over time. Money belongs to the period in which its request began,
 * whenever it is settled. Periods are remembered for a while after their end:
 * when the date goes back, the period that it goes back to is as spent as it was;
 * when it goes back beyond memory, the oldest that is remembered counts.
 */
export class Account {
  readonly per: Budget['per']
  /** 1e-12 USD for each period; may change at any time. */
  limit: bigint
  /** Ascending. */
  readonly #periods: Period[]
  #current: Period
  /** Whether it may no longer be told of a past. */
  #isRestoreClosed = false
  /** Whether what it has is not all that was spent: it was out of force. */
  #stale = false

  /** @param now - ms since 1970 */
  constructor(per: Budget['per'], limit: bigint, now: number) {
    this.per = per
    this.limit = limit
    this.#current = periodOf(per, now)
    this.#periods = [this.#current]
  }

  /**
   * Milliseconds until `pico` can be spent, at `now` (ms since 1970): 0 = now,
   * Infinity = never. What is free can always be had.
   */
  wait(pico: bigint, now: number): number {
    if (pico === 0n) return 0
    const { spent, reserved, end } = this.periodAt(now)
    if (spent + reserved + pico <= this.limit) return 0
    if (pico > this.limit) return Infinity
    const renewal = end - now
    return spent + pico <= this.limit ? Math.min(IN_FLIGHT_RETRY_MS, renewal) : renewal
  }

  /** What can be spent at `now` (ms since 1970); below 0 where more has been than may. */
  free(now: number): bigint {
    const { spent, reserved } = this.periodAt(now)
    return this.limit - spent - reserved
  }

  /** Sets `pico` aside in the period of `now` and returns that period. */
  reserve(pico: bigint, now: number): Period {
    this.closeRestore()
    const period = this.periodAt(now)
    period.reserved += pico
    return period
  }

  /** It is out of force: what is spent from here on it does not count, and has to be told again. */
  suspend(): void {
    this.#isRestoreClosed = false
    this.#stale = true
  }

  /**
   * Adds what was spent before this account began, or came back into force, at
   * `startedAt`. In the latter case that takes the place of what it has itself.
   *
   * @returns false, and adds nothing, if it has begun
   */
  restore(pico: bigint, startedAt: number): boolean {
    if (this.#isRestoreClosed) return false
    if (this.#stale) for (const period of this.#periods) period.spent = 0n
    this.#stale = false
    this.#find(startedAt).spent += pico
    this.#trim()
    return true
  }

  /** Ends the telling of the past. */
  closeRestore(): void {
    this.#isRestoreClosed = true
  }

  /** Whether nothing was ever spent that is still remembered. */
  idle(): boolean {
    return this.#periods.every(({ spent, reserved }) => spent === 0n && reserved === 0n)
  }

  /** The period that counts at `now`, ms since 1970. */
  periodAt(now: number): Period {
    if (!covers(this.#current, now)) {
      const oldest = this.#periods[0]
      this.#current = oldest !== undefined && this.#isBeyondMemory(now, oldest) ? oldest : this.#find(now)
      this.#trim()
    }
    return this.#current
  }

  /** One more that is older would take the place of the latest. */
  #isBeyondMemory(now: number, oldest: Period): boolean {
    return this.#periods.length === PERIODS_KEPT && now < oldest.start
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

function covers({ start, end }: Period, now: number): boolean {
  return now >= start && now < end
}

function periodOf(per: Budget['per'], now: number): Period {
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
