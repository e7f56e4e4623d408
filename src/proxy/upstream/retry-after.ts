import { headerValue, type RawHeaders } from '../http/raw-headers.ts'

/** @returns the requested wait in ms, from `retry-after-ms` or `retry-after` (seconds or date; RFC 9110 section 10.2.3); null = none */
export function retryAfter(headers: RawHeaders, nowMs: number): number | null {
  const ms = number(headerValue(headers, 'retry-after-ms'))
  if (ms !== null) return ms
  const text = headerValue(headers, 'retry-after')
  const seconds = number(text)
  if (seconds !== null) return seconds * 1000
  const date = dateOf(text)
  return date === null ? null : Math.max(0, date - nowMs)
}

/** The date formats of RFC 9110 section 5.6.7. Checked first, because `Date.parse` also accepts other text, such as `-5`. */
const HTTP_DATE = /^[A-Z][A-Za-z]{2,8},? [A-Za-z\d -]{6,13} \d\d:\d\d:\d\d( GMT| \d{4})$/

/** Milliseconds since 1970; null = not a date. */
function dateOf(text: string | null): number | null {
  if (text === null || !HTTP_DATE.test(text)) return null
  // The oldest of the formats (asctime) is in UTC but does not say so.
  const date = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(date) ? null : date
}

function number(text: string | null): number | null {
  return text !== null && /^\s*\d{1,15}(\.\d+)?\s*$/.test(text) ? Number(text) : null
}
