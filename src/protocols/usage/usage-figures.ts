import { isObject } from '../../base/is-object.ts'
import type { JsonObject } from '../neutral/json.ts'

const EMPTY: JsonObject = Object.freeze({})

/** No response of any model comes near; a counter gone wrong does, and would be billed in millions. */
export const MAX_COUNT = 1_000_000_000

/**
 * Reads the figures of one usage object and remembers whether one of them was
 * nonsense. A figure that cannot be a count (negative, fractional, above a
 * thousand million, a string, an object) reads as null, like one that is absent.
 */
export class Figures {
  /** A figure was there and was not believed. */
  suspect = false

  /** A count that may be absent: undefined and null are no figure and no cause for doubt. */
  count(value: unknown): number | null {
    if (value === undefined || value === null) return null
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT) return value
    return this.markSuspect()
  }

  /** A count that the protocol promises: its absence is suspect too. */
  required(value: unknown): number | null {
    return value === undefined || value === null ? this.markSuspect() : this.count(value)
  }

  /** A count that must fit into `whole`; an unknown whole fits all. */
  part(value: unknown, whole: number | null): number | null {
    if (value === undefined || value === null) return null
    const count = this.count(value)
    return count !== null && whole !== null && count > whole ? this.markSuspect() : count
  }

  /**
   * A duration in seconds that the protocol promises, to the millisecond, as the
   * ledger has it: models tell it as a float, such as 8.470000267028809.
   */
  seconds(value: unknown): number | null {
    if (typeof value === 'number' && value >= 0 && value <= MAX_COUNT) return Math.round(value * 1000) / 1000
    return this.markSuspect()
  }

  /** An object that may be absent; anything else in its place is suspect and reads as empty. */
  object(value: unknown): JsonObject {
    if (value === undefined || value === null) return EMPTY
    if (isObject(value)) return value
    this.suspect = true
    return EMPTY
  }

  /** An array that may be absent; anything else in its place is suspect and reads as empty. */
  array(value: unknown): readonly unknown[] {
    if (value === undefined || value === null) return []
    if (Array.isArray(value)) return value
    this.suspect = true
    return []
  }

  private markSuspect(): null {
    this.suspect = true
    return null
  }
}

/** What is left of `whole` beside a part of it; null when the whole is unknown, never below 0. */
export function remainder(whole: number | null, part: number | null): number | null {
  return whole === null ? null : Math.max(0, whole - (part ?? 0))
}

/** A part of a whole, cut to what the other parts leave of it. */
export function clampTo(part: number | null, limit: number | null): number | null {
  return part !== null && limit !== null && part > limit ? limit : part
}
