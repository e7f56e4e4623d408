import { useCallback, useMemo } from 'react'
import { useSearchParams } from 'wouter'

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
  /** What was chosen; equal ids mean the same choice. */
  readonly id: string
  readonly preset: Preset | 'custom'
  readonly label: string
  /** The moments that the choice means at a time, as the API takes them. */
  at(now: number): { from: string; to: string }
}

/** A time counted back from the present. */
export function presetRange(preset: Preset): TimeRange {
  return {
    id: preset,
    preset,
    label: PRESETS[preset],
    at: now => {
      if (preset === 'today') return written(startOfDay(now), now)
      if (preset === 'yesterday') return written(startOfDay(now) - DAY, startOfDay(now))
      if (preset === 'month') return written(startOfMonth(now, 0), now)
      if (preset === 'last-month') return written(startOfMonth(now, -1), startOfMonth(now, 0))
      return written(now - LENGTHS[preset], now)
    },
  }
}

/** The same in whole UTC days: `the last 7 days` are today and the six before it. */
export function wholeDays(range: TimeRange): TimeRange {
  return {
    ...range,
    id: `days of ${range.id}`,
    at: now => {
      const { from, to } = range.at(now)
      return written(Math.ceil(Date.parse(from) / DAY) * DAY, Math.ceil(Date.parse(to) / DAY) * DAY)
    },
  }
}

/** @param from - ISO 8601 UTC; @param to - likewise, the first moment after it */
export function customRange(from: string, to: string): TimeRange {
  return { id: `${from}/${to}`, preset: 'custom', label: labelOf(from, to), at: () => ({ from, to }) }
}

/**
 * The time chosen in the address: `?range=7d`, or `?from=…&to=…`. What is wrong there is
 * as if nothing stood there.
 */
export function rangeOf(search: URLSearchParams, fallback: Preset): TimeRange {
  const from = momentOf(search.get('from'))
  const to = momentOf(search.get('to'))
  if (from !== null && to !== null && from < to) return customRange(from, to)
  const preset = search.get('range')
  return presetRange(preset !== null && Object.hasOwn(PRESETS, preset) ? preset as Preset : fallback)
}

/** Members of the address that mean a range: for links that keep it. */
export function searchOf(range: TimeRange): Record<string, string> {
  return range.preset === 'custom' ? range.at(0) : { range: range.preset }
}

/** The range in the address, and how to put another there; the other members stay, but for those given up. */
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

/** Does it go on, so that what happens next belongs to it? */
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

function written(from: number, to: number) {
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
}

function momentOf(text: string | null): string | null {
  const time = text === null ? NaN : Date.parse(text)
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}

function labelOf(from: string, to: string): string {
  const isWhole = (moment: string) => moment.endsWith('T00:00:00.000Z')
  if (isWhole(from) && isWhole(to)) {
    const last = new Date(Date.parse(to) - 1).toISOString().slice(0, 10)
    const first = from.slice(0, 10)
    return first === last ? first : `${first} – ${last}`
  }
  const brief = (moment: string) => moment.slice(0, 16).replace('T', ' ')
  return `${brief(from)} – ${brief(to)}`
}
