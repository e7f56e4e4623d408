/** A match in a text. */
export interface Span {
  readonly start: number
  readonly end: number
  /** What the mark of the match is called: `EMAIL` for `[EMAIL_1]`. */
  readonly label: string
}

/** Finds matches in a text, in time linear in its length. They can overlap those of other finders. */
export type Finder = (text: string) => Span[]

/** The spans in the order of the text; of those that overlap, the first, or the longest of those with the same start. */
export function withoutOverlaps(spans: Span[]): Span[] {
  spans.sort((a, b) => a.start - b.start || b.end - a.end)
  let end = 0
  return spans.filter(span => {
    if (span.start < end) return false
    end = span.end
    return true
  })
}

/** @param pattern global; what it matches is bounded, or a failed match does not read a text twice */
export function spansOf(pattern: RegExp, label: string, text: string, isValid: (match: string) => boolean = () => true): Span[] {
  return Array.from(text.matchAll(pattern))
    .filter(([match]) => isValid(match))
    .map(({ 0: match, index }) => ({ start: index, end: index + match.length, label }))
}
