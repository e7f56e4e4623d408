import { constants } from 'node:buffer'
import type { Behaviour } from './behaviour.ts'

/** Words of reasoning if the request asks for reasoning and no behaviour sets the number. */
const DEFAULT_REASONING = 8
/** Words of a response if `tokens` is not set. */
export const DEFAULT_TOKENS = 16

/** The content of a response: reasoning `r1 r2 r3 ...`, and then words `w1 w2 w3 ...`. Each word is one token. */
export interface Plan {
  /** Number of words of reasoning. */
  readonly reasoning: number
  /** The number of the first word. */
  readonly from: number
  /** Number of words of text. */
  readonly words: number
  /** Text before the first word: a space if the response continues a text. */
  readonly lead: '' | ' '
  /** Minimum bytes of a word with its space. Shorter words are filled with dots. */
  readonly chunk: number
  /** true if the token limit ended the response. */
  readonly clipped: boolean
  /** Tokens of the text, without reasoning. */
  readonly tokens: number
}

export interface PlanInput {
  /** Maximum number of output tokens, including reasoning; null = no limit. */
  readonly limit: number | null
  /** true if the request asks for reasoning. */
  readonly reasons: boolean
  /** The text that the response must continue; null = none. */
  readonly prefill: string | null
}

/**
 * Plans the content of a response from the request and its behaviours. The whole response is w1 to w`tokens`. With a prefill, the response
 * continues after the prefill's last word. The token limit counts reasoning first, and then words.
 */
export function planOutput(behaviour: Behaviour, input: PlanInput): Plan {
  const limit = input.limit ?? Infinity
  const reasoning = Math.min(behaviour.reasoning ?? (input.reasons ? DEFAULT_REASONING : 0), limit)
  const start = continuation(input.prefill ?? '')
  if (behaviour.huge !== undefined) {
    const tokens = Math.ceil(behaviour.huge / 4)
    return { reasoning, ...start, words: 1, chunk: behaviour.huge, clipped: false, tokens }
  }
  const wanted = Math.max(0, (behaviour.tokens ?? DEFAULT_TOKENS) - start.from + 1)
  const words = Math.min(wanted, limit - reasoning)
  return { reasoning, ...start, words, chunk: behaviour.chunk ?? 0, clipped: words < wanted, tokens: words }
}

/** The words of the text one by one. Each has its space in front. */
export function* words(plan: Plan): Generator<string, void, undefined> {
  const { from, chunk } = plan
  for (let i = 0; i < plan.words; i++) {
    const word = `${i === 0 ? plan.lead : ' '}w${from + i}`
    yield word.length < chunk ? word.padEnd(chunk, '.') : word
  }
}

/** The words of the reasoning one by one. Each has its space in front. */
export function* reasoningWords(plan: Plan): Generator<string, void, undefined> {
  for (let i = 1; i <= plan.reasoning; i++) yield i === 1 ? 'r1' : ` r${i}`
}

/**
 * All words of the text as one string.
 *
 * @throws RangeError if the text is longer than a string can be
 */
export function textOf({ from, words, lead, chunk }: Plan): string {
  return numbered('w', { from, count: words, lead, chunk })
}

/** All words of the reasoning as one string. */
export function reasoningOf({ reasoning }: Plan): string {
  return numbered('r', { from: 1, count: reasoning, lead: '', chunk: 0 })
}

const SPACE = 0x20
const DOT = 0x2e
const ZERO = 0x30

interface Run {
  readonly from: number
  readonly count: number
  readonly lead: string
  readonly chunk: number
}

/** Creates `w7 w8 w9` in a buffer, because millions of strings would block the process and fill its memory. */
function numbered(letter: string, { from, count, lead, chunk }: Run): string {
  const most = count * Math.max(chunk, ` ${letter}${from + count}`.length)
  if (most > constants.MAX_STRING_LENGTH) throw new RangeError('the text is longer than a string can be')
  const bytes = Buffer.allocUnsafe(most)
  let digits = String(from).length
  let length = 0
  for (let number = from; number < from + count; number++) {
    const start = length
    if (number === 10 ** digits) digits++
    if (number > from || lead !== '') bytes[length++] = SPACE
    bytes[length++] = letter.charCodeAt(0)
    for (let at = length + digits - 1, rest = number; at >= length; at--) {
      bytes[at] = ZERO + rest % 10
      rest = Math.floor(rest / 10)
    }
    length += digits
    while (length < start + chunk) bytes[length++] = DOT
  }
  return bytes.toString('latin1', 0, length)
}

function continuation(text: string): { from: number; lead: '' | ' ' } {
  const trimmed = text.trimEnd()
  const last = /(?:^|\s)w(\d{1,15})\.*$/.exec(trimmed)
  const spaced = text === '' || trimmed.length < text.length
  return { from: last ? Number(last[1]) + 1 : 1, lead: spaced ? '' : ' ' }
}
