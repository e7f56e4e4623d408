import type { Span } from './span.ts'

/** The marks of a request: the same value gets the same mark wherever it stands. */
export class Marks {
  readonly #marks = new Map<string, string>()
  readonly #counts = new Map<string, number>()

  /** @param spans in the order of the text, without overlaps */
  mask(text: string, spans: readonly Span[]): string {
    const masked = this.#replace(text, spans, () => false)
    // A number in JSON can become a mark only in quotes.
    if (!/^\s*[[{]/.test(text) || isJson(masked) || !isJson(text)) return masked
    return this.#replace(text, spans, ({ start, end }) => isBare(text, start, end))
  }

  #replace(text: string, spans: readonly Span[], isQuoted: (span: Span) => boolean): string {
    const pieces: string[] = []
    let at = 0
    for (const span of spans) {
      const mark = this.#mark(span.label, text.slice(span.start, span.end))
      pieces.push(text.slice(at, span.start), isQuoted(span) ? `"${mark}"` : mark)
      at = span.end
    }
    return pieces.join('') + text.slice(at)
  }

  #mark(label: string, value: string): string {
    const known = this.#marks.get(value)
    if (known !== undefined) return known
    const count = (this.#counts.get(label) ?? 0) + 1
    this.#counts.set(label, count)
    const mark = `[${label}_${count}]`
    this.#marks.set(value, mark)
    return mark
  }
}

/** Tells whether a value of JSON begins and ends here: a number has no quotes. */
function isBare(text: string, start: number, end: number): boolean {
  return /[:,[]\s{0,9}$/.test(text.slice(Math.max(0, start - 10), start)) && /^\s{0,9}[,\]}]/.test(text.slice(end, end + 10))
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    // A text that is no JSON.
    return false
  }
}
