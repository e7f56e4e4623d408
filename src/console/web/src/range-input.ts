import { dayUtc, minuteUtc } from './format.ts'
import { customRange, type TimeRange } from './range.ts'

/** A range in UTC, as the user types it: `2026-11-21 07:18`. For whole days, the first and the last day: `2026-11-21`. */
export interface RangeInput {
  readonly from: string
  readonly to: string
}

/** Error texts for the start and for the end. */
export type RangeErrors = Partial<RangeInput>

const DAY = 86_400_000
/** Matches a date and time. Timestamps that are pasted are accepted too; seconds are ignored. */
const MINUTE_FORM = /^(\d{4}-\d{2}-\d{2})(?:[T ]\s*|\s+)(\d{2}:\d{2})(?::\d{2}(?:\.\d+)?)?\s*(?:Z|UTC)?$/i
const DAY_FORM = /^(\d{4}-\d{2}-\d{2})$/

/** @param range - times in ISO 8601; `to` is exclusive */
export function toRangeInput({ from, to }: RangeInput, days: boolean): RangeInput {
  if (days) return { from: dayUtc(from), to: dayUtc(Date.parse(to) - 1) }
  return { from: minuteUtc(from), to: minuteUtc(to) }
}

/** @returns the range, or texts that say what to correct */
export function parseRangeInput(text: RangeInput, days: boolean):
{ readonly range: TimeRange } | { readonly errors: RangeErrors } {
  const [from, to] = [timeOf(text.from, days), timeOf(text.to, days)]
  if (from === null || to === null) {
    const form = days ? 'Use the format 2026-11-21' : 'Use the format 2026-11-21 07:18'
    return { errors: { ...from === null && { from: form }, ...to === null && { to: form } } }
  }
  const end = days ? to + DAY : to
  if (from >= end) return { errors: { to: 'The end must be after the start' } }
  return { range: customRange(new Date(from).toISOString(), new Date(end).toISOString()) }
}

function timeOf(text: string, days: boolean): number | null {
  const trimmed = text.trim()
  const [, day, minute = '00:00'] = (days ? DAY_FORM : MINUTE_FORM).exec(trimmed) ?? []
  if (day === undefined) return null
  const iso = `${day}T${minute}:00.000Z`
  const time = Date.parse(iso)
  // Refuse 31 February, which some engines accept as a day in March, and 24:00, which some accept as the next midnight.
  return Number.isNaN(time) || new Date(time).toISOString() !== iso ? null : time
}
