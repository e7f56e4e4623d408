import { LineCounter } from 'yaml'
import { splitReferences } from './references.ts'

/** Offsets in UTF-16 units, from 0; `end` is exclusive. */
export interface Range { readonly start: number, readonly end: number }

const EXCERPT_WIDTH = 100

/** @param ranges sorted and disjoint */
export function overlapping(ranges: readonly Range[], { start, end }: Range): Range[] {
  let low = 0
  for (let high = ranges.length; low < high;) {
    const middle = Math.floor((low + high) / 2)
    if (ranges[middle]!.end <= start) low = middle + 1
    else high = middle
  }
  const found: Range[] = []
  for (let at = low; at < ranges.length && ranges[at]!.start < end; at++) found.push(ranges[at]!)
  return found
}

/** The file's text, split into lines. */
export class SourceText {
  readonly text: string
  readonly #lines = new LineCounter()

  constructor(text: string) {
    this.text = text
    for (let start = 0; start !== -1; start = text.indexOf('\n', start) + 1 || -1) this.#lines.addNewLine(start)
  }

  get lineCount(): number {
    return this.#lines.lineStarts.length
  }

  /** The line and column, from 1, of an offset in UTF-16 units. */
  position(offset: number): { line: number, column: number } {
    const { line, col: column } = this.#lines.linePos(offset)
    return { line, column }
  }

  /** The range of a line without its line break. @param line from 1 */
  lineRange(line: number): Range {
    const start = this.#lines.lineStarts[line - 1]!
    const next = this.#lines.lineStarts[line]
    const end = next === undefined ? this.text.length : next - 1
    return { start, end: this.text[end - 1] === '\r' && end > start ? end - 1 : end }
  }

  line(line: number): string {
    const { start, end } = this.lineRange(line)
    return this.text.slice(start, end)
  }

  /** The line of an offset, with a caret below it. Literals in secret ranges are shown as `***`. @param secrets sorted and disjoint */
  excerpt(offset: number, secrets: readonly Range[]): string {
    const { line } = this.position(offset)
    const { start, end } = this.lineRange(line)
    let shown = ''
    let caret = 0
    let at = start
    const copyTo = (to: number): void => {
      if (offset >= at) caret = shown.length + Math.min(offset, to) - at
      shown += this.text.slice(at, to)
      at = to
    }
    for (const secret of overlapping(secrets, { start, end })) {
      copyTo(Math.max(secret.start, at))
      for (const { raw, mask } of maskSecret(this.text.slice(at, Math.min(secret.end, end)))) {
        if (offset >= at) caret = shown.length
        shown += mask
        at += raw.length
      }
    }
    copyTo(end)
    return formatExcerpt(line, printable(shown), caret)
  }
}

/** Splits a secret into pieces, each with its replacement. Names of variables and quotes are shown. */
export function maskSecret(text: string): { raw: string, mask: string }[] {
  const quote = /^(["']).*\1$/s.exec(text)?.[1] ?? ''
  const edge = quote === '' ? [] : [{ raw: quote, mask: quote }]
  const inner = splitReferences(text.slice(quote.length, text.length - quote.length)).map(piece => {
    if (piece.kind !== 'reference') return { raw: piece.raw, mask: '***' }
    return { raw: piece.raw, mask: piece.fallback === null ? piece.raw : `\${${piece.name}:-***}` }
  })
  return [...edge, ...inner, ...edge]
}

function formatExcerpt(line: number, text: string, caret: number): string {
  const from = text.length > EXCERPT_WIDTH ? Math.max(0, Math.min(caret - EXCERPT_WIDTH / 2, text.length - EXCERPT_WIDTH)) : 0
  const cut = text.slice(from, from + EXCERPT_WIDTH)
  const shown = `${from > 0 ? '…' : ''}${cut}${from + EXCERPT_WIDTH < text.length ? '…' : ''}`
  const before = shown.slice(0, caret - from + (from > 0 ? 1 : 0)).replaceAll(/[^\t]/g, ' ')
  const gutter = String(line).padStart(5)
  return `${gutter} | ${shown}\n${' '.repeat(gutter.length)} | ${before}^`
}

/** Matches characters that move the cursor of a terminal or begin a line, and spaces and letters that look like others. */
// eslint-disable-next-line no-control-regex
const MISLEADING = /[\u0000-\u0008\u000a-\u001f\u007f-\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff]/g

/** Replaces each misleading character of a line by U+FFFD. */
export function printable(text: string): string {
  return text.replaceAll(MISLEADING, '\ufffd')
}
