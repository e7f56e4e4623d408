const FORM = 'a date is written like 2027-01-01 (its beginning in UTC) or 2027-01-01T12:00:00Z'
const INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/

/** Parses an RFC 3339 time, or a date. A date means 00:00 UTC. @returns ms since 1970 @throws RangeError */
export function parseInstant(text: string): number {
  const ms = INSTANT.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(ms)) throw new RangeError(FORM)
  // Refuse February 31, which Date.parse accepts as a day in March.
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`)
  if (new Date(day).toISOString().slice(0, 10) !== text.slice(0, 10)) throw new RangeError(`there is no day ${text.slice(0, 10)}`)
  return ms
}
