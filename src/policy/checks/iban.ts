import { spansOf, type Finder } from './span.ts'

/** Characters of an IBAN, by country (SWIFT's IBAN Registry, release 99). */
const LENGTHS = new Map(Object.entries({
  15: 'NO', 16: 'BE', 18: 'DK FI FK FO GL NL SD', 19: 'MK SI', 20: 'AT BA EE KZ LT LU MN XK', 21: 'CH HR LI LV', 22: 'BG BH CR DE GB GE IE ME RS VA',
  23: 'AE GI IL IQ OM SO TL', 24: 'AD CZ ES MD PK RO SA SE SK TN VG', 25: 'LY PT ST', 26: 'IS TR', 27: 'BI DJ FR GR IT MC MR SM',
  28: 'AL AZ BY CY DO GT HN HU LB NI PL SV', 29: 'BR EG PS QA UA', 30: 'JO KW MU YE', 31: 'MT SC', 32: 'LC', 33: 'RU',
}).flatMap(([length, countries]) => countries.split(' ').map(country => [country, Number(length)] as const)))

const START = /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?=[ -]?[A-Z0-9])/gi
const SEPARATOR = /[ -]/
const ALPHANUMERIC = /[A-Za-z0-9]/

/** Bank accounts with the length of their country and correct check digits (ISO 13616), in groups or not. */
export const findIbans: Finder = text => spansOf(START, 'IBAN', text).flatMap(({ start }) => {
  const length = LENGTHS.get(text.slice(start, start + 2).toUpperCase()) ?? 0
  let iban = ''
  let end = start
  while (iban.length < length && end < text.length) {
    const char = text[end] as string
    if (ALPHANUMERIC.test(char)) iban += char
    else if (!SEPARATOR.test(char) || SEPARATOR.test(text[end - 1] as string)) break
    end++
  }
  const isWhole = length > 0 && iban.length === length && !ALPHANUMERIC.test(text[end] ?? '')
  return isWhole && hasCheckDigits(iban.toUpperCase()) ? { start, end, label: 'IBAN' } : []
})

/** ISO 7064, MOD 97-10. */
function hasCheckDigits(iban: string): boolean {
  let rest = 0
  for (const char of iban.slice(4) + iban.slice(0, 4)) {
    const value = parseInt(char, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}
