export interface Column<T> {
  readonly title: string
  readonly text: (item: T) => string
  /** true = the column is aligned to the right, for numbers. */
  readonly right?: boolean
}

/** The titles in the first line, and then one line for each item. Control characters are escaped. */
export function table<T>(columns: readonly Column<T>[], items: readonly T[]): string {
  const cells = columns.map(({ title, text }) => [title, ...items.map(item => escapeControlCharacters(text(item)))])
  const widths = cells.map(column => column.reduce((widest, cell) => Math.max(widest, displayWidth(cell)), 0))
  const line = (at: number) => cells.map((column, n) => {
    const cell = column[at] ?? ''
    const space = ' '.repeat((widths[n] ?? 0) - displayWidth(cell))
    return columns[n]?.right === true ? space + cell : cell + space
  }).join('  ').trimEnd()
  return Array.from({ length: items.length + 1 }, (_, at) => `${line(at)}\n`).join('')
}

/** A terminal draws combining characters over the previous character, and wide characters in two columns (Unicode, UAX 11). */
const COMBINING_CHARACTERS = /\p{M}/gu
const WIDE_CHARACTERS = /[\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60\u{20000}-\u{3ffff}]|\p{Emoji_Presentation}/gu

function displayWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  return [...text.replace(COMBINING_CHARACTERS, '').replace(WIDE_CHARACTERS, '  ')].length
}

/**
 * Replaces control characters by escapes, such as `\u{1b}` for ESC: names come from clients, and must not control the terminal or fake
 * lines.
 */
export function escapeControlCharacters(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** Formats a number: 1234567 becomes 1,234,567, and null becomes a dash. */
export function formatNumber(value: number | bigint | null): string {
  return value === null ? '-' : value.toLocaleString('en-US', { maximumFractionDigits: 3 })
}
