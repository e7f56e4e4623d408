import { isIP, isIPv6 } from 'node:net'
import { spansOf, type Finder, type Span } from './span.ts'

const LOCAL = /[\p{L}\p{N}.!#$%&'*+/=?^_`{|}~-]/u
const DOMAIN = /(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}\p{L}[\p{L}\p{N}-]{0,61}[\p{L}\p{N}]/uy
/** Octets of the part before the @ (RFC 5321 section 4.5.3.1.1). */
const MAX_LOCAL = 64

/** Email addresses: read from each @ to both sides. */
export const findEmails: Finder = text => {
  const spans: Span[] = []
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    let start = at
    while (start > 0 && at - start < MAX_LOCAL && LOCAL.test(text[start - 1] as string)) start--
    if (start === at) continue
    DOMAIN.lastIndex = at + 1
    if (DOMAIN.test(text)) spans.push({ start, end: DOMAIN.lastIndex, label: 'EMAIL' })
  }
  return spans
}

const V4 = /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)/g
/** Each run is read once. */
const V6_RUN = /[0-9A-Fa-f:]{2,100}(?:\.\d{1,3}){0,3}/g
const MAX_V6 = 45

/** IP addresses, of both versions. */
export const findIps: Finder = text => [
  ...spansOf(V4, 'IP', text, match => isIP(match) === 4),
  ...text.includes(':') ? v6In(text) : [],
]

function v6In(text: string): Span[] {
  return spansOf(V6_RUN, 'IP', text).flatMap(({ start, end, label }) => {
    if (end - start > MAX_V6 + 1 || /[\w:.]/.test(text[start - 1] ?? '') || /[\w:]/.test(text[end] ?? '')) return []
    const run = text.slice(start, end)
    const address = /[^:]:$/.test(run) ? run.slice(0, -1) : run
    // Without a digit it can be a word of a program, such as a::b.
    return isIPv6(address) && /\d/.test(address) ? { start, end: start + address.length, label } : []
  })
}
