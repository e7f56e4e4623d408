import { isObject } from '../../base/is-object.ts'
import type { JsonObject } from '../neutral/json.ts'

const EMPTY: JsonObject = Object.freeze({})

/** Maximum of a count. No response reaches it. A wrong count of an upstream can exceed it, and would be billed in millions. */
export const MAX_COUNT = 1_000_000_000

/** Reads the figures of one usage object. A figure that cannot be a count (negative, fractional, too large, a string) becomes null. */
export class Figures {
  /** true if a figure was present but not accepted. */
  suspect = false

  /** Reads a count that may be absent: undefined and null are not suspect. */
  count(value: unknown): number | null {
    if (value === undefined || value === null) return null
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT) return value
    return this.markSuspect()
  }

  /** Reads a count that the protocol requires: an absent count is suspect. */
  required(value: unknown): number | null {
    return value === undefined || value === null ? this.markSuspect() : this.count(value)
  }

  /** Reads a count that is at most `whole`. If `whole` is null, any count is accepted. */
  part(value: unknown, whole: number | null): number | null {
    if (value === undefined || value === null) return null
    const count = this.count(value)
    return count !== null && whole !== null && count > whole ? this.markSuspect() : count
  }

  /** Reads a required duration in seconds, rounded to ms as in the ledger, because models report numbers such as 8.470000267028809. */
  seconds(value: unknown): number | null {
    if (typeof value === 'number' && value >= 0 && value <= MAX_COUNT) return Math.round(value * 1000) / 1000
    return this.markSuspect()
  }

  /** Reads an optional object. A value of another type is suspect and becomes an empty object. */
  object(value: unknown): JsonObject {
    if (value === undefined || value === null) return EMPTY
    if (isObject(value)) return value
    this.suspect = true
    return EMPTY
  }

  /** Reads an optional array. A value of another type is suspect and becomes an empty array. */
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

/** `whole` minus `part`, at least 0; null = `whole` is unknown. */
export function remainder(whole: number | null, part: number | null): number | null {
  return whole === null ? null : Math.max(0, whole - (part ?? 0))
}

/** Limits a part to what the other parts of the whole leave. */
export function clampTo(part: number | null, limit: number | null): number | null {
  return part !== null && limit !== null && part > limit ? limit : part
}
