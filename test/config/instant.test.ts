import t from 'tap'
import { parseInstant } from '../../src/config/instant.ts'

for (const [text, expected] of [
  ['2027-01-01', '2027-01-01T00:00:00.000Z'],
  ['2027-01-01T12:00Z', '2027-01-01T12:00:00.000Z'],
  ['2027-01-01T12:00:30Z', '2027-01-01T12:00:30.000Z'],
  ['2027-01-01T12:00:30.5Z', '2027-01-01T12:00:30.500Z'],
  ['2027-01-01T01:00:00+02:00', '2026-12-31T23:00:00.000Z'],
  ['2028-02-29', '2028-02-29T00:00:00.000Z'],
] as const) {
  t.test(`the date ${text} is read as ${expected}`, async t => t.equal(new Date(parseInstant(text)).toISOString(), expected))
}

for (const [text, message] of [
  ['', /^a date is written like/], ['2027', /^a date is written like/], ['01.02.2027', /^a date is written like/], ['2027-1-1', /^a date is written like/],
  ['2027-01-01T12:00:00', /^a date is written like/], ['2027-01-01 12:00:00Z', /^a date is written like/], ['2027-13-01', /^a date is written like/], ['2027-01-01T25:00:00Z', /^a date is written like/],
  ['x2027-01-01', /^a date is written like/], ['2027-01-01x', /^a date is written like/],
  ['2027-02-29', /^there is no day 2027-02-29/], ['2027-04-31T12:00:00Z', /^there is no day 2027-04-31/],
] as const) {
  t.test(`"${text}" is refused as a date`, async t => t.throws(() => parseInstant(text), { name: 'RangeError', message }))
}
