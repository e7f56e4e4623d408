/**
 * A bucket's level is kept in 1/60,000 of what is counted: at a limit of N a
 * minute exactly N such units drain in a millisecond, so that all arithmetic is
 * on integers and no rounding adds up.
 */
const UNITS = 60_000

/** A higher limit than this per minute is held at it: above, a double no longer counts units exactly. */
export const MAX_PER_MINUTE = 1e11

/** What a reservation holds of a bucket until its true size is known. */
export interface Hold {
  amount: number
  readonly lowWaterMark: LowWaterMark
}

/**
 * Holds since whose start the bucket has been equally low. The newer, the less
 * low: a bucket's tides are a stack that grows upwards, and a low that undercuts
 * its top melts them into one. They are few, however many holds there are, except
 * after a burst.
 */
interface LowWaterMark {
  /** The lowest level since, in units. */
  low: number
  holds: number
  older: LowWaterMark | null
  newer: LowWaterMark | null
  /** The tide that this one melted into. */
  mergedInto: LowWaterMark | null
}

/**
 * A rate per minute by the generic cell rate algorithm, in its continuous-state
 * leaky bucket form (ITU-T I.371, annex A): what is admitted is poured in, the
 * bucket drains evenly, and a request conforms if it fits. The bucket holds one
 * minute's worth, so that in any stretch of t minutes at most limit * (1 + t) is
 * admitted.
 *
 * A hold is poured in at its worst case. When it turns out smaller, the level
 * becomes exactly what it would be had the true amount been poured in at the
 * start. That is not always the whole difference: what would since have drained
 * into nothing is lost, as it is for anybody who leaves a limit unused, or else
 * long-running requests could save up a burst. The loss is known from the lowest
 * level since (the regulator of a reflected process), hence the tides.
 *
 * Times are whole milliseconds of a monotonic clock, amounts whole numbers.
 */
export class Bucket {
  #perMinute: number
  #level = 0
  #drainedAt: number
  #newest: LowWaterMark | null = null

  constructor(perMinute: number, now: number) {
    this.#perMinute = Math.min(perMinute, MAX_PER_MINUTE)
    this.#drainedAt = now
  }

  /** Changes the rate; what is in the bucket stays. */
  setRate(perMinute: number, now: number): void {
    this.#drain(now)
    this.#perMinute = Math.min(perMinute, MAX_PER_MINUTE)
  }

  get perMinute(): number {
    return this.#perMinute
  }

  /** Milliseconds until `amount` fits: 0 = now, Infinity = never. Nothing always fits. */
  wait(amount: number, now: number): number {
    this.#drain(now)
    const over = this.#level + (amount - this.#perMinute) * UNITS
    if (over <= 0 || amount === 0) return 0
    return amount > this.#perMinute ? Infinity : Math.ceil(over / this.#perMinute)
  }

  /** Pours in `amount`, also where it does not fit: a debt, which has to drain first. */
  add(amount: number, now: number): void {
    this.#drain(now)
    this.#level = Math.min(this.#level + amount * UNITS, Number.MAX_SAFE_INTEGER)
  }

  /** Pours in `amount` and remembers it until `settle`. */
  hold(amount: number, now: number): Hold {
    this.add(amount, now)
    const tide: LowWaterMark = { low: this.#level, holds: 1, older: this.#newest, newer: null, mergedInto: null }
    if (this.#newest !== null) this.#newest.newer = tide
    this.#newest = tide
    return { amount, lowWaterMark: tide }
  }

  /**
   * Ends a hold that turned out to be `amount`; once for each hold.
   */
  settle(hold: Hold, amount: number, now: number): void {
    this.#drain(now)
    if (amount < hold.amount) this.#refund(mergedMark(hold.lowWaterMark), (hold.amount - amount) * UNITS)
    const tide = mergedMark(hold.lowWaterMark)
    if (--tide.holds === 0) this.#unlink(tide)
    if (amount > hold.amount) this.add(amount - hold.amount, now)
  }

  /** Takes `amount`, or what there is, out of a hold. @returns a hold of its own, from the same moment on */
  split(hold: Hold, amount: number): Hold {
    const tide = mergedMark(hold.lowWaterMark)
    tide.holds++
    const part = Math.min(amount, hold.amount)
    hold.amount -= part
    return { amount: part, lowWaterMark: tide }
  }

  /** What would be admitted now; not below 0. */
  remaining(now: number): number {
    this.#drain(now)
    return Math.max(0, Math.floor(this.#perMinute - this.#level / UNITS))
  }

  /** Milliseconds until the bucket is empty, if nothing is poured in. */
  resetMs(now: number): number {
    this.#drain(now)
    return this.#perMinute === 0 ? 0 : Math.ceil(this.#level / this.#perMinute)
  }

  /** Whether it differs in nothing from a new one. */
  idle(now: number): boolean {
    this.#drain(now)
    return this.#level === 0 && this.#newest === null
  }

  #drain(now: number): void {
    const elapsed = now - this.#drainedAt
    if (elapsed <= 0) return
    this.#level = Math.max(0, this.#level - elapsed * this.#perMinute)
    this.#drainedAt = now
    if (this.#newest === null || this.#newest.low <= this.#level) return
    this.#newest.low = this.#level
    this.#merge(this.#newest)
  }

  #refund(tide: LowWaterMark, units: number): void {
    const refund = Math.min(units, tide.low)
    if (refund === 0) return
    for (let at: LowWaterMark | null = tide; at !== null; at = at.newer) at.low -= refund
    this.#level -= refund
    this.#merge(tide)
  }

  /**
   * Melts `tide` into the older ones that are no lower. It is the older that
   * lasts, or else the chain behind a long-lived hold would grow without end.
   */
  #merge(tide: LowWaterMark): void {
    for (let at = tide; at.older !== null && at.older.low >= at.low; at = at.mergedInto) {
      at.mergedInto = at.older
      at.mergedInto.low = at.low
      at.mergedInto.holds += at.holds
      this.#unlink(at)
    }
  }

  #unlink(tide: LowWaterMark): void {
    const { older, newer } = tide
    if (older !== null) older.newer = newer
    if (newer !== null) newer.older = older
    else this.#newest = older
    // A hold may keep this one reachable; its neighbours need not stay with it.
    tide.older = tide.newer = null
  }
}

function mergedMark(tide: LowWaterMark): LowWaterMark {
  let last = tide
  while (last.mergedInto !== null) last = last.mergedInto
  // Shortens the way for the next look-up.
  for (let at = tide; at.mergedInto !== null;) {
    const next = at.mergedInto
    at.mergedInto = last
    at = next
  }
  return last
}
