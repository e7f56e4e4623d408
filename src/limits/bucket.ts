/**
 * A bucket's level is kept in 1/60,000 of what is counted: at a limit of N a
 * minute exactly N such units drain in a millisecond, so that all arithmetic is
 * on integers and no rounding adds up.
 */
const UNITS = 60_000

/** The highest rate. Higher limits are lowered to this value: a double would not count their units exactly. */
export const MAX_PER_MINUTE = 1e11

/** What a reservation holds of a bucket until its actual amount is known. */
export interface Hold {
  amount: number
  /** Counts the holds of the bucket. A hold that was split keeps its number. */
  readonly number: number
}

/** The lowest level since some holds were poured in. */
interface LowWaterMark {
  /** The level in units. */
  low: number
  /** Number of the first hold that the mark covers. It covers the holds up to the next mark's `firstHold`. */
  readonly firstHold: number
  /** Number of unsettled holds that the mark covers. */
  holds: number
}

/**
 * A rate per minute by the generic cell rate algorithm, in its continuous-state
 * leaky bucket form (ITU-T I.371, annex A): what is admitted is poured in, the
 * bucket drains evenly, and a request conforms if it fits. The bucket holds one
 * minute's worth, so that in any stretch of t minutes at most limit * (1 + t) is
 * admitted.
 *
 * A hold is poured in at its worst case. When it turns out smaller, the level
 * becomes exactly what it would be had the actual amount been poured in at the
 * start. That is not always the whole difference: what would since have drained
 * from an empty bucket is lost, as for every limit that is left unused. Otherwise
 * long-running requests could save up a burst. The loss follows from the lowest
 * level since (the regulator of a reflected process), therefore the low-water marks.
 *
 * Times are whole milliseconds of a monotonic clock, amounts whole numbers.
 */
export class Bucket {
  /** Written by `setRate`. */
  perMinute: number
  #level = 0
  #drainedAt: number
  /** Oldest first, which is also lowest first: a new level merges the marks above it. Usually there are few. */
  readonly #marks: LowWaterMark[] = []
  #lastHold = 0

  constructor(perMinute: number, now: number) {
    this.perMinute = Math.min(perMinute, MAX_PER_MINUTE)
    this.#drainedAt = now
  }

  /** Changes the rate; what is in the bucket stays. */
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

  /** Adds `amount`, even if it does not fit: the excess has to drain first. */
  add(amount: number, now: number): void {
    if (now > this.#drainedAt) this.#drain(now)
    this.#level = Math.min(this.#level + amount * UNITS, Number.MAX_SAFE_INTEGER)
  }

  /** Adds `amount` and remembers it until `settle`. */
  hold(amount: number, now: number): Hold {
    this.add(amount, now)
    const number = ++this.#lastHold
    this.#marks.push({ low: this.#level, firstHold: number, holds: 1 })
    return { amount, number }
  }

  /** Replaces the amount of a hold by the actual one. Called once for each hold. */
  settle(hold: Hold, amount: number, now: number): void {
    if (now > this.#drainedAt) this.#drain(now)
    let at = this.#markOf(hold)
    if (amount < hold.amount) at = this.#refund(at, (hold.amount - amount) * UNITS)
    const mark = this.#marks[at]
    if (mark !== undefined && --mark.holds === 0) this.#marks.splice(at, 1)
    if (amount > hold.amount) this.add(amount - hold.amount, now)
  }

  /** Takes up to `amount` out of a hold. @returns a hold for it, with the same start */
  split(hold: Hold, amount: number): Hold {
    const mark = this.#marks[this.#markOf(hold)]
    if (mark !== undefined) mark.holds++
    const part = Math.min(amount, hold.amount)
    hold.amount -= part
    return { amount: part, number: hold.number }
  }

  /** @returns the amount that fits now, at least 0 */
  remaining(now: number): number {
    if (now > this.#drainedAt) this.#drain(now)
    return Math.max(0, Math.floor(this.perMinute - this.#level / UNITS))
  }

  /** @returns ms until the bucket is empty, if nothing is added */
  resetMs(now: number): number {
    if (now > this.#drainedAt) this.#drain(now)
    return this.perMinute === 0 ? 0 : Math.ceil(this.#level / this.perMinute)
  }

  /** True if the bucket has the state of a new one, so that it can be dropped. */
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

  /** @returns the index of the mark after the refund */
  #refund(at: number, units: number): number {
    const refund = Math.min(units, this.#marks[at]?.low ?? 0)
    if (refund === 0) return at
    for (const mark of this.#marks.slice(at)) mark.low -= refund
    this.#level -= refund
    return this.#merge(at)
  }

  /** Merges a mark with the older marks that are not lower. @returns the index of the merged mark */
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

  /** The index of the mark that covers a hold. */
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
