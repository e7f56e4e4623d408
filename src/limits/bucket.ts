/** Level units per request or token: a limit of N a minute drains N units each ms, so all arithmetic is on integers. */
const UNITS = 60_000

/** Higher limits are lowered to this rate: a double would not count their units exactly. */
export const MAX_PER_MINUTE = 1e11

/** The reserved amount of a bucket until the actual amount is known. */
export interface Hold {
  amount: number
  /** Number of this hold in its bucket. The parts of a split hold have the same number. */
  readonly number: number
}

/** The lowest level since some holds were poured in. */
interface LowWaterMark {
  low: number
  /** The mark covers the holds from this number up to the next mark's `firstHold`. */
  readonly firstHold: number
  /** Unsettled holds that the mark covers. */
  holds: number
}

/**
 * A rate per minute by the generic cell rate algorithm, as a continuous-state leaky bucket (ITU-T I.371, annex A): each
 * admitted amount is poured in, the bucket drains evenly, and a request conforms if it fits. The bucket holds one minute's
 * worth, so any stretch of t minutes admits at most limit * (1 + t).
 *
 * A hold is poured in at its worst case. When its actual amount is smaller, the level becomes exactly what it would be with
 * the actual amount from the start. This can return less than the difference: the drain is lost for the time in which the
 * bucket would have been empty, so that long-running requests cannot save up a burst. The lowest level since the hold gives
 * the loss (the regulator of a reflected process), so each hold keeps its low-water mark.
 *
 * Times are whole ms of a monotonic clock, amounts whole numbers.
 */
export class Bucket {
  /** Written by `setRate`. */
  perMinute: number
  #level = 0
  #drainedAt: number
  /** Oldest and lowest first: a new level merges the marks above it. Usually there are few. */
  readonly #marks: LowWaterMark[] = []
  #lastHold = 0

  constructor(perMinute: number, now: number) {
    this.perMinute = Math.min(perMinute, MAX_PER_MINUTE)
    this.#drainedAt = now
  }

  /** Changes the rate and keeps the level. */
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

  /** Replaces the amount of a hold by the actual amount; called once for each hold. */
  settle(hold: Hold, amount: number, now: number): void {
    if (now > this.#drainedAt) this.#drain(now)
    let at = this.#markOf(hold)
    if (amount < hold.amount) at = this.#refund(at, (hold.amount - amount) * UNITS)
    const mark = this.#marks[at]
    if (mark !== undefined && --mark.holds === 0) this.#marks.splice(at, 1)
    if (amount > hold.amount) this.add(amount - hold.amount, now)
  }

  /** Takes up to `amount` out of a hold. @returns a hold of that amount with the same start */
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

  /** Whether the bucket equals a new one, so that it can be dropped. */
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

  /** Merges a mark with older marks that are as high or higher. @returns the index of the merged mark */
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
