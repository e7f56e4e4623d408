/**
 * Converts values of the API to text: numbers, money, times, durations, sizes. No other file does this. Money is never converted to a
 * float.
 */

const MINUS = '\u2212'
const NARROW = '\u202f'

/** Formats money with all digits and at least two decimals: `1234.5` -> `$1,234.50`. null -> `–`. */
export function money(usd: string | null): string {
  if (usd === null) return '–'
  const { sign, whole, fraction } = digitsOf(usd)
  return `${sign}$${grouped(whole)}.${fraction.padEnd(2, '0')}`
}

/**
 * Formats money for headings: with two decimals, or with two significant digits below one cent. Halves are rounded up. `0.0012345` ->
 * `$0.0012`.
 */
export function moneyShort(usd: string | null): string {
  if (usd === null) return '–'
  const { sign, whole, fraction } = digitsOf(usd)
  const leading = fraction.length - fraction.replace(/^0+/, '').length
  const kept = whole === '0' && leading >= 2 ? Math.min(leading + 2, 8) : 2
  const padded = fraction.padEnd(kept + 1, '0')
  const scaled = BigInt(whole + padded.slice(0, kept)) + (padded.charAt(kept) >= '5' ? 1n : 0n)
  const digits = scaled.toString().padStart(kept + 1, '0')
  const rounded = digits.slice(-kept)
  const trimmed = rounded.replace(/0+$/, '').padEnd(2, '0')
  return `${sign}$${grouped(digits.slice(0, -kept))}.${trimmed}`
}

/** Formats money for a chart axis. From 10,000 on, the text is shortened: `0.00000003` -> `$0.00000003`, `30000` -> `$30K`. */
export function moneyTick(value: number): string {
  // `toFixed` is needed, because String() writes small numbers as 3e-8.
  return value < 10_000 ? moneyShort(value.toFixed(12)) : `$${SHORT.format(value)}`
}

/** The cost of some requests, of which a part may be unknown. */
export interface KnownCost {
  /** The known part in USD; null = no part is known. */
  readonly cost_usd: string | null
  readonly unpriced_requests: number
}

/** Formats a cost with its unknown part: `$1.50`, `$1.50 + unknown`, `unknown`. */
export function costText({ cost_usd, unpriced_requests }: KnownCost, write = money): string {
  if (cost_usd === null) return 'unknown'
  return unpriced_requests === 0 ? write(cost_usd) : `${write(cost_usd)} + unknown`
}

/** Converts money to a float, only for lengths in charts and for sorting. An unknown cost is 0. */
export function approximate(usd: string | null): number {
  return Number(usd ?? 0)
}

/** Adds decimal strings of the API exactly. */
export function sum(...usd: readonly string[]): string {
  const places = Math.max(0, ...usd.map(text => digitsOf(text).fraction.length))
  const total = usd.reduce((acc, text) => {
    const { sign, whole, fraction } = digitsOf(text)
    const scaled = BigInt(whole + fraction.padEnd(places, '0'))
    return sign === '' ? acc + scaled : acc - scaled
  }, 0n)
  const digits = (total < 0n ? -total : total).toString().padStart(places + 1, '0')
  const whole = places === 0 ? digits : digits.slice(0, -places)
  const fraction = places === 0 ? '' : digits.slice(-places).replace(/0+$/, '')
  return `${total < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

/** Number of decimals that `money` writes. */
export function decimalsOf(usd: string): number {
  return Math.max(2, digitsOf(usd).fraction.length)
}

function digitsOf(usd: string): { sign: string; whole: string; fraction: string } {
  const negative = usd.startsWith('-')
  const [whole = '0', fraction = ''] = (negative ? usd.slice(1) : usd).split('.')
  return { sign: negative ? MINUS : '', whole, fraction: fraction.replace(/0+$/, '') }
}

function grouped(whole: string): string {
  return whole.replace(/\B(?=(\d{3})+$)/g, ',')
}

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const QUANTITY = new Intl.NumberFormat('en-US', { maximumFractionDigits: 3 })
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })

/** Formats a whole number: `1234567` -> `1,234,567`. */
export function count(value: number | null): string {
  return value === null ? '–' : WHOLE.format(value)
}

/** Formats a number with its noun: `1 request`, `1,234 requests`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`
}

/** Formats a quantity that may be a fraction, such as seconds of audio: `1,234.568`. */
export function quantity(value: number): string {
  return QUANTITY.format(value)
}

/** Formats a number in short form: `1234567` -> `1.2M`. Numbers below 10,000 are exact. */
export function countShort(value: number): string {
  return value < 10_000 ? WHOLE.format(value) : SHORT.format(value)
}

/** Formats a share of 1 as a percentage: `0.1234` -> `12 %`. Very small shares become `<0.1 %` instead of 0. */
export function percent(share: number): string {
  if (share === 0) return `0${NARROW}%`
  const value = share * 100
  if (Math.abs(value) < 0.1) return `<0.1${NARROW}%`
  const digits = Math.abs(value) < 10 || (share < 1 && value > 99) ? 1 : 0
  return `${value.toFixed(digits).replace(/\.0$/, '')}${NARROW}%`
}

/** Formats ms: `320 ms`, `1.42 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`. null -> `–`. */
export function duration(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 1000) return `${ms < 10 && ms > 0 ? Number(ms.toFixed(1)) : Math.round(ms)}${NARROW}ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)}${NARROW}s`
  const seconds = Math.floor(ms / 1000)
  if (seconds < 3600) return two(Math.floor(seconds / 60), 'min', seconds % 60, 's')
  const minutes = Math.floor(seconds / 60)
  if (minutes < 1440) return two(Math.floor(minutes / 60), 'h', minutes % 60, 'min')
  const hours = Math.floor(minutes / 60)
  return two(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

function two(large: number, unit: string, small: number, smaller: string): string {
  return small === 0 ? `${large}${NARROW}${unit}` : `${large}${NARROW}${unit} ${small}${NARROW}${smaller}`
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** Formats bytes, in units of powers of 1000: `1.2 MB`. */
export function bytes(value: number): string {
  let amount = value
  let unit = 0
  while (amount >= 999.5 && unit < BYTE_UNITS.length - 1) {
    amount /= 1000
    unit += 1
  }
  const figure = unit === 0 || amount >= 99.5 ? Math.round(amount) : amount.toFixed(1)
  return `${figure}${NARROW}${BYTE_UNITS[unit]}`
}

/** Formats a time in UTC: `2026-11-21 07:18:22`. */
export function timeUtc(moment: string | number): string {
  return new Date(moment).toISOString().slice(0, 19).replace('T', ' ')
}

/** Formats a time in UTC with milliseconds: `2026-11-21 07:18:22.123`. */
export function timeExact(moment: string | number): string {
  return new Date(moment).toISOString().slice(0, 23).replace('T', ' ')
}

const LOCAL = new Intl.DateTimeFormat('sv-SE', {
  dateStyle: 'short', timeStyle: 'medium',
})
const ZONE = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' })

/** Formats a time in the time zone of the browser: `2026-11-21 08:18:22.123 GMT+1`. */
export function timeLocal(moment: string | number): string {
  const date = new Date(moment)
  const zone = ZONE.formatToParts(date).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  return `${LOCAL.format(date)}.${String(date.getMilliseconds()).padStart(3, '0')} ${zone}`
}

/** Formats a day in UTC: `2026-11-21`. */
export function dayUtc(moment: string | number): string {
  return new Date(moment).toISOString().slice(0, 10)
}

/** Formats a time in UTC without seconds: `2026-11-21 07:18`. */
export function minuteUtc(moment: string | number): string {
  return timeUtc(moment).slice(0, 16)
}

/** Formats a time in UTC without the current year: `11-21 07:18:22`. Another year is shown. */
export function timeShort(moment: string | number, now: number): string {
  const [time, present] = [timeUtc(moment), timeUtc(now)]
  return time.slice(0, 4) === present.slice(0, 4) ? time.slice(5) : time
}

/** Formats a time of day in UTC: `07:18 UTC`. On another day: `2026-11-21 07:18 UTC`. */
export function clockUtc(moment: string | number, now: number): string {
  return `${dayUtc(moment) === dayUtc(now) ? hourUtc(moment) : minuteUtc(moment)} UTC`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

/** Formats a day without the current year: `21 Nov`. In another year: `21 Nov 2025`. */
export function dayShort(moment: string | number, now: number): string {
  const date = new Date(moment)
  const text = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`
  return date.getUTCFullYear() === new Date(now).getUTCFullYear() ? text : `${text} ${date.getUTCFullYear()}`
}

/** Formats a time of day in UTC: `07:18`. */
export function hourUtc(moment: string | number): string {
  return new Date(moment).toISOString().slice(11, 16)
}

/** Formats a month: `2026-11` -> `November 2026`. */
export function monthName(month: string): string {
  const date = new Date(`${month}-01T00:00:00Z`)
  return date.toLocaleDateString('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
}

/** Formats a time relative to now: `just now`, `5 min ago`, `in 3 h`. */
export function relative(moment: string | number, now: number): string {
  const ms = now - new Date(moment).getTime()
  const away = Math.abs(ms)
  if (away < 5_000) return 'just now'
  const text = away < 60_000 ? `${Math.round(away / 1000)}${NARROW}s`
    : away < 3_600_000 ? `${Math.round(away / 60_000)}${NARROW}min`
    : away < 86_400_000 ? `${Math.round(away / 3_600_000)}${NARROW}h`
    : `${Math.round(away / 86_400_000)}${NARROW}d`
  return ms > 0 ? `${text} ago` : `in ${text}`
}

/** Formats a name that a client chose. A name that would be invisible is put in quotes. */
export function visible(name: string): string {
  return name.trim() === '' ? `"${name}"` : name
}

/** Texts for the period of a budget. */
export const PER_PERIOD = { day: 'per day', month: 'per month', total: 'in total' } as const
