import { spansOf, type Finder, type Span } from './span.ts'

const MIN_CARD = 13
const MAX_CARD = 19
const SEPARATORS = ' -\u00a0'

/**
 * Payment cards: 13 to 19 digits that begin like a card's and have its check digit (ISO/IEC 7812), in groups or not. Numbers can stand
 * beside a card, so it can begin and end at each group.
 */
export const findCards: Finder = text => {
  const spans: Span[] = []
  /** The last groups that one card could have. */
  let groups: { readonly start: number, readonly digits: string }[] = []
  let before = -1
  for (let at = 0; at < text.length; at++) {
    if (!isDigit(text, at)) continue
    const start = at
    while (isDigit(text, at)) at++
    if (start !== before + 1 || !SEPARATORS.includes(text[before] as string)) groups = []
    before = at
    if (at - start > MAX_CARD || isLetter(text, start - 1) || isLetter(text, at) || (text[start - 1] === '.' && isDigit(text, start - 2))) {
      groups = []
      continue
    }
    groups.push({ start, digits: text.slice(start, at) })
    if (groups.length > MAX_CARD) groups.shift()
    const card = startOfCard(groups)
    if (card === -1) continue
    spans.push({ start: card, end: at, label: 'CARD' })
    groups = []
  }
  return spans
}

/** @returns where the longest card starts that ends with the last group; -1 = none */
function startOfCard(groups: readonly { readonly start: number, readonly digits: string }[]): number {
  let found = -1
  let digits = ''
  for (const group of groups.toReversed()) {
    digits = group.digits + digits
    if (digits.length > MAX_CARD) break
    if (digits.length >= MIN_CARD && /^[2-6]/.test(digits) && hasCheckDigit(digits)) found = group.start
  }
  return found
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0x30 && code <= 0x39
}

function isLetter(text: string, at: number): boolean {
  return /[A-Za-z_]/.test(text[at] ?? '')
}

/** The Luhn algorithm (ISO/IEC 7812-1, annex B). */
function hasCheckDigit(digits: string): boolean {
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    sum += i % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2
  }
  return sum % 10 === 0
}

const SSN = /(?<![\w-])(?!000|666|9)\d{3}([ -])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])/g

/** US social security numbers, in the form 123-45-6789, of areas that are given out (ssa.gov/employer/randomization.html). */
export const findSsns: Finder = text => spansOf(SSN, 'SSN', text)

const INTERNATIONAL = /(?<![\w+])\+[1-9](?:[ .()/\-\u00a0]{0,2}\d){6,14}(?!\d)/g
const NORTH_AMERICAN = /(?<![\w.+-])(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-. ])[2-9]\d{2}[-. ]\d{4}(?![\w-])/g

/** Phone numbers: with + and the code of the country (E.164), and in the forms (212) 555-0123 and 212-555-0123 of North America. */
export const findPhones: Finder = text => [
  ...text.includes('+') ? spansOf(INTERNATIONAL, 'PHONE', text) : [], ...spansOf(NORTH_AMERICAN, 'PHONE', text),
]
