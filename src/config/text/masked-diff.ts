import { diffArrays } from 'diff'
import { maskedText } from './masked.ts'

export interface DiffLine {
  /** What the line is. `gap` stands for unchanged lines that are left out. */
  readonly kind: 'added' | 'removed' | 'same' | 'gap'
  /** Line number, from 1: in the old text for removed lines, otherwise in the new text. */
  readonly line: number
  readonly text: string
}

/** Number of unchanged lines to show before and after a change. */
const CONTEXT = 3
const MAX_LINES = 400
const MAX_LINE_LENGTH = 500
/** Maximum number of added and removed lines to compare, because the time grows with the square of this number. */
const MAX_EDIT_LENGTH = 2_000

/**
 * The differences, line by line, with secrets masked. A changed secret counts as a difference. At most 400 lines. null = too many
 * differences.
 */
export function maskedDiff(before: string, after: string): DiffLine[] | null {
  const changes = diffArrays(linesOf(before), linesOf(after), { maxEditLength: MAX_EDIT_LENGTH })
  if (changes === undefined) return null
  const [oldLines, newLines] = [linesOf(maskedText(before)), linesOf(maskedText(after))]
  const diff: DiffLine[] = []
  let [oldAt, newAt] = [0, 0]
  const add = (kind: DiffLine['kind'], lines: readonly string[], at: number): void =>
    void diff.push({ kind, line: at + 1, text: (lines[at] ?? '').slice(0, MAX_LINE_LENGTH) })
  for (const [n, { added, removed, count }] of changes.entries()) {
    if (diff.length > MAX_LINES) break
    if (removed) for (let i = 0; i < count; i++) add('removed', oldLines, oldAt++)
    else if (added) for (let i = 0; i < count; i++) add('added', newLines, newAt++)
    else {
      const head = n === 0 ? 0 : CONTEXT
      const tail = n === changes.length - 1 ? 0 : CONTEXT
      for (let i = 0; i < count; i++) {
        if (i < head || i >= count - tail) add('same', newLines, newAt + i)
        else if (i === head) diff.push({ kind: 'gap', line: newAt + i + 1, text: '' })
      }
      oldAt += count
      newAt += count
    }
  }
  return diff.slice(0, MAX_LINES)
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n')
}
