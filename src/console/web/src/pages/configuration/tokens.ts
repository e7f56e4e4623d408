/** A part of a line of YAML that has its own colour. */
export interface Token {
  readonly kind: 'key' | 'comment' | 'mark' | 'value'
  readonly text: string
}

const LINE =
  /^(\s*(?:- +)*)((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"'{[&*!|>-][^#:]*?|-[^\s#:][^#:]*?):(?=\s|$))?(.*)$/

/** Splits a line of YAML into key, value and comment. The result is exact enough for colours. */
export function tokens(line: string): Token[] {
  const [, indent = '', key = '', rest = ''] = LINE.exec(line) ?? []
  const at = commentAt(rest, key === '')
  const found: Token[] = [
    { kind: 'mark', text: indent },
    { kind: 'key', text: key },
    { kind: 'value', text: rest.slice(0, at) },
    { kind: 'comment', text: rest.slice(at) },
  ]
  return found.filter(({ text }) => text !== '')
}

/** The index of the comment. A # starts a comment at the start of a line or after a space, but not inside quotes. */
function commentAt(text: string, fromStart: boolean): number {
  let quote = ''
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i)
    if (quote !== '') {
      if (char === quote) quote = ''
    } else if (char === '"' || char === "'") {
      quote = char
    } else if (char === '#' && (i === 0 ? fromStart || text === '#' : /\s/.test(text.charAt(i - 1)))) {
      return i
    }
  }
  return text.length
}
