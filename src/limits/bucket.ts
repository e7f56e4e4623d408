/** Level units for each request or token. With 60,000, a limit of N per minute drains N units each ms, and all arithmetic is exact. */
const UNITS = 60_000

/** Higher limits are lowered to this rate, because a number cannot count their units exactly. */
export const MAX_PER_MINUTE = 1e11

/** An amount that is reserved in a bucket until the actual amount is known. */
export interface Hold {
  amount: number
  /** Sequence number of the hold in its bucket. The parts of a split hold have the same number. */
  readonly number: number
}

/** The lowest level of the bucket since certain holds were added. */
interface LowWaterMark {
  low: number
  /** Number of the first hold that the mark covers. The last one is before the next mark's `firstHold`. */
  readonly firstHold: number
  /** How many holds that the mark covers are not settled. */
  holds: number
}

/**
 * Limits a rate per minute by the generic cell rate algorithm, as a continuous-state leaky bucket (ITU-T I.371, annex A): each
 * admitted amount raises the level, the level falls evenly, and a request is admitted if its amount fits. The capacity is the
 * limit of one minute, so that in t minutes at most limit * (1 + t) is admitted.
 *
 * A hold adds the estimated maximum of a request. If the actual amount is smaller, `settle` sets the level as if the actual amount
 * had been added at the start. The level can fall by less than the difference: with the smaller amount, the bucket might have been
 * empty for some time, and an empty bucket does not drain. So long-running requests cannot collect quota for a
 * burst. The lowest level since the hold gives this loss (the regulator of a reflected process): each hold has a low-water mark.
 *
 * Times are whole ms on a monotonic clock. Amounts are whole numbers.
 */
export class Bucket {
  /** Written by `setRate`. */
  perMinute: number
  #level = 0
  #drainedAt: number
  /** Ordered by age and by level, oldest and lowest first. Marks above the current level are merged, so there are usually few. */
  readonly #marks: LowWaterMark[] = []
  #lastHold = 0

  constructor(perMinute: number, now: number) {
    this.perMinute = Math.min(perMinute, MAX_PER_MINUTE)
    this.#drainedAt = now
  }

  /** Changes the rate without changing the level. */
  setRate(perMinute: number, now: number): void {
    if (now > this.#drainedAt) this.#drain(now)
    this.perMinute = Math.min(perMinute, MAX_PER_MINUTE)
  }

  /** @returns ms until `amount` fits: 0 = now, Infinity = never; an amount of 0 always fits */
  wait(amount: number, now: number): number {
    if (now > this.#drainedAt) this.#drain(now)
    const over = this.#level + (amount - this.perMinute) * UNITS
    if (over <= 0 || amount === 0) return 0
    return amount > this.perMinute ? Infinity : Math.ceil(over / this.perMinute)
  }

  /** Adds `amount` even if it does not fit. Nothing more fits until the excess has drained. */
  add(amount: number, now: number): void {
    if (now > this.#drainedAt) this.#drain(now)
    this.#level = Math.min(this.#level + amount * UNITS, Number.MAX_SAFE_INTEGER)
  }

  /** Adds `amount` as a hold, which `settle` replaces by the actual amount. */
  hold(amount: number, now: number): Hold {
    this.add(amount, now)
    const number = ++this.#lastHold
    this.#marks.push({ low: this.#level, firstHold: number, holds: 1 })
    return { amount, number }
  }

  /** Replaces the amount of a hold by the actual amount. Call this once for each hold. */
  settle(hold: Hold, amount: number, now: number): void {
    if (now > this.#drainedAt) this.#drain(now)
    let at = this.#markOf(hold)
    if (amount < hold.amount) at = this.#refund(at, (hold.amount - amount) * UNITS)
    const mark = this.#marks[at]
    if (mark !== undefined && --mark.holds === 0) this.#marks.splice(at, 1)
    if (amount > hold.amount) this.add(amount - hold.amount, now)
  }

  /** Moves up to `amount` from a hold to a new hold with the same number. @returns the new hold */
  split(hold: Hold, amount: number): Hold {
    const mark = this.#marks[this.#markOf(hold)]
    if (mark !== undefined) mark.holds++
    const part = Math.min(amount, hold.amount)
    hold.amount -= part
    return { amount: part, number: hold.number }
  }

  /** @returns the amount that fits now; 0 if nothing fits */
  remaining(now: number): number {
    if (now > this.#drainedAt) this.#drain(now)
    return Math.max(0, Math.floor(this.perMinute - this.#level / UNITS))
  }

  /** @returns ms until the bucket is empty, if nothing is added */
  resetMs(now: number): number {
    if (now > this.#drainedAt) this.#drain(now)
    return this.perMinute === 0 ? 0 : Math.ceil(this.#level / this.perMinute)
  }

  /** @returns true = the bucket is empty and has no holds, so that a new bucket can replace it */
  idle(now: number): boolean {
    if (now > this.#drainedAt) this.#drain(now)
    return this.#level === 0 && this.#marks.length === 0
  }

  #drain(now: number): void {
    this.#level = Math.max(0, this.#level - (now - this.#drainedAt) * this.perMinute)
    this.#drainedAt = now
    const newest = this.#marks.at(-1)
    if (newest === undefined || newest.low <= this.#level) return
    newest.low = this.#level
    this.#merge(this.#marks.length - 1)
  }

  /** @returns the index of the mark after marks were merged */
  #refund(at: number, units: number): number {
    const refund = Math.min(units, this.#marks[at]?.low ?? 0)
    if (refund === 0) return at
    for (const mark of this.#marks.slice(at)) mark.low -= refund
    this.#level -= refund
    return this.#merge(at)
  }

  /** Merges a mark with the older marks whose level is not lower. @returns the index of the merged mark */
  #merge(at: number): number {
    const marks = this.#marks
    for (let mark = marks[at], older = marks[at - 1]; mark && older && older.low >= mark.low; older = marks[at - 1]) {
      older.low = mark.low
      older.holds += mark.holds
      marks.splice(at, 1)
      at -= 1
      mark = older
    }
    return at
  }

  #markOf({ number }: Hold): number {
    let [from, to] = [0, this.#marks.length]
    while (to - from > 1) {
      const middle = (from + to) >> 1
      if ((this.#marks[middle]?.firstHold ?? 0) <= number) from = middle
      else to = middle
    }
    return from
  }
}
