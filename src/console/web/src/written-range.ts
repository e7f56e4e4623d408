import { customRange } from './range.ts'
import type { TimeRange } from './range.ts'

/**
 * A time as people write it, in UTC: `2026-11-21 07:18`; of whole days, the first and the last: `2026-11-21`.
 */
export interface RangeInput {
  readonly from: string
  readonly to: string
}

/** What is wrong with either end. */
export type RangeErrors = Partial<RangeInput>

const DAY = 86_400_000
/** The seconds of a moment that was copied from elsewhere are let go. */
const MINUTE_FORM = /^(\d{4}-\d{2}-\d{2})(?:[T ]\s*|\s+)(\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?\s*(?:Z|UTC)?$/i
const DAY_FORM = /^(\d{4}-\d{2}-\d{2})$/

/** @param range - ISO 8601; `to` is the first moment after it */
export function toRangeInput({ from, to }: RangeInput, days: boolean): RangeInput {
  if (days) return { from: from.slice(0, 10), to: new Date(Date.parse(to) - 1).toISOString().slice(0, 10) }
  return { from: minuteOf(from), to: minuteOf(to) }
}

/** What is meant by what was written, or what to change in it. */
export function parseRangeInput(written: RangeInput, days: boolean):
{ readonly range: TimeRange } | { readonly faults: RangeErrors } {
  const [from, to] = [timeOf(written.from, days), timeOf(written.to, days)]
  if (from === null || to === null) {
    const form = days ? 'Write it as 2026-11-21' : 'Write it as 2026-11-21 07:18'
    return { faults: { ...from === null && { from: form }, ...to === null && { to: form } } }
  }
  const beyond = days ? to + DAY : to
  if (from >= beyond) return { faults: { to: 'The end has to be after the start' } }
  return { range: customRange(new Date(from).toISOString(), new Date(beyond).toISOString()) }
}

function minuteOf(moment: string): string {
  return moment.slice(0, 16).replace('T', ' ')
}

function timeOf(text: string, days: boolean): number | null {
  const trimmed = text.trim()
  const [, day, minute = '00:00'] = (days ? DAY_FORM : MINUTE_FORM).exec(trimmed) ?? []
  if (day === undefined) return null
  const iso = `${day}T${minute}:00.000Z`
  const time = Date.parse(iso)
  // Some engines take the 31st of February for a day of March, and 24:00 for the next midnight.
  return Number.isNaN(time) || new Date(time).toISOString() !== iso ? null : time
}
