import { useCallback, useMemo } from 'react'
import { useSearchParams } from 'wouter'
import { dayUtc, minuteUtc } from './format.ts'

export const PRESETS = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  month: 'This month',
  'last-month': 'Last month',
} as const
export type Preset = keyof typeof PRESETS

const HOUR = 3_600_000
const DAY = 24 * HOUR
const LENGTHS = { '1h': HOUR, '24h': 24 * HOUR, '7d': 168 * HOUR, '30d': 720 * HOUR } as const

export interface TimeRange {
  /** Identifies the selection: two ranges with the same id are equal. */
  readonly id: string
  readonly preset: Preset | 'custom'
  readonly label: string
  /** The start and end of the range at the time `now`, in ISO 8601, as the API expects. */
  at(now: number): { from: string; to: string }
}

/** A range relative to the current time. */
export function presetRange(preset: Preset): TimeRange {
  return {
    id: preset,
    preset,
    label: PRESETS[preset],
    at: now => {
      if (preset === 'today') return isoRange(startOfDay(now), now)
      if (preset === 'yesterday') return isoRange(startOfDay(now) - DAY, startOfDay(now))
      if (preset === 'month') return isoRange(startOfMonth(now, 0), now)
      if (preset === 'last-month') return isoRange(startOfMonth(now, -1), startOfMonth(now, 0))
      return isoRange(now - LENGTHS[preset], now)
    },
  }
}

/** The range in whole UTC days. `Last 7 days` is the current day and the six days before it. */
export function wholeDays(range: TimeRange): TimeRange {
  return {
    ...range,
    id: `days of ${range.id}`,
    at: now => {
      const { from, to } = range.at(now)
      return isoRange(Math.ceil(Date.parse(from) / DAY) * DAY, Math.ceil(Date.parse(to) / DAY) * DAY)
    },
  }
}

/** @param from - ISO 8601, UTC; @param to - ISO 8601, UTC, exclusive */
export function customRange(from: string, to: string): TimeRange {
  return { id: `${from}/${to}`, preset: 'custom', label: labelOf(from, to), at: () => ({ from, to }) }
}

/** A range around this range, twice as long. It ends at the latest at the current time. */
export function zoomedOut(range: TimeRange, now: number): TimeRange {
  const { from, to } = range.at(now)
  const [start, end] = [Date.parse(from), Date.parse(to)]
  const half = Math.round((end - start) / 2)
  const last = Math.max(end, Math.min(end + half, now))
  const next = isoRange(last - 4 * half, last)
  return customRange(next.from, next.to)
}

/** The range in the page's URL: `?range=7d`, or `?from=…&to=…`. Invalid values are ignored. */
export function rangeOf(search: URLSearchParams, fallback: Preset): TimeRange {
  const from = momentOf(search.get('from'))
  const to = momentOf(search.get('to'))
  if (from !== null && to !== null && from < to) return customRange(from, to)
  const preset = search.get('range')
  return presetRange(preset !== null && Object.hasOwn(PRESETS, preset) ? preset as Preset : fallback)
}

/** The range as parameters of a URL, for links to pages with the same range. */
export function searchOf(range: TimeRange): Record<string, string> {
  return range.preset === 'custom' ? range.at(0) : { range: range.preset }
}

/**
 * The range in the page's URL, and a function that changes it.
 * @param drops - parameters of the URL that a change removes; other parameters stay
 */
export function useRange(fallback: Preset = '24h', drops: readonly string[] = []):
[range: TimeRange, choose: (range: TimeRange) => void] {
  const [search, setSearch] = useSearchParams()
  const text = search.toString()
  const range = useMemo(() => rangeOf(new URLSearchParams(text), fallback), [text, fallback])
  const choose = useCallback((chosen: TimeRange) => {
    setSearch(before => {
      const next = new URLSearchParams(before)
      for (const name of ['range', 'from', 'to', ...drops]) next.delete(name)
      for (const [name, value] of Object.entries(searchOf(chosen))) next.set(name, value)
      return next
    })
  }, [setSearch, drops])
  return [range, choose]
}

/** Tells whether the range includes the current time, so that new requests are in it. */
export function isOpenEnded({ preset }: TimeRange): boolean {
  return preset !== 'custom' && preset !== 'yesterday' && preset !== 'last-month'
}

function startOfDay(now: number): number {
  return Math.floor(now / DAY) * DAY
}

function startOfMonth(now: number, away: number): number {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + away, 1)
}

function isoRange(from: number, to: number) {
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
}

function momentOf(text: string | null): string | null {
  const time = text === null ? NaN : Date.parse(text)
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}

function labelOf(from: string, to: string): string {
  const isWhole = (moment: string) => moment.endsWith('T00:00:00.000Z')
  if (isWhole(from) && isWhole(to)) {
    const last = dayUtc(Date.parse(to) - 1)
    const first = dayUtc(from)
    return first === last ? first : `${first} – ${last}`
  }
  return `${minuteUtc(from)} – ${minuteUtc(to)}`
}
