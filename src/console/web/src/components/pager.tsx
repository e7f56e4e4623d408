import { Button } from '@mantine/core'
import { IconChevronLeft, IconChevronRight } from '@tabler/icons-react'
import { count } from '../format.ts'
import classes from './pager.module.css'

export interface PagerProps {
  /** Number of rows before the first visible row. */
  readonly offset: number
  /** Number of rows on a page. */
  readonly limit: number
  readonly total: number
  readonly go: (offset: number) => void
}

/** Says which rows of a long table are visible, and has buttons for other rows. Shows nothing if all rows are visible. */
export function Pager({ offset, limit, total, go }: PagerProps) {
  if (total <= limit && offset === 0) return null
  const last = Math.min(offset + limit, total)
  return (
    <nav className={classes.pager} aria-label="Table pages">
      <span aria-live="polite">{count(Math.min(offset + 1, total))}–{count(last)} of {count(total)}</span>
      <Button variant="default" size="xs" disabled={offset === 0}
        leftSection={<IconChevronLeft size={14} aria-hidden />}
        onClick={() => { go(Math.max(0, offset - limit)) }}>
        Previous
      </Button>
      <Button variant="default" size="xs" disabled={last >= total}
        rightSection={<IconChevronRight size={14} aria-hidden />}
        onClick={() => { go(offset + limit) }}>
        Next
      </Button>
    </nav>
  )
}
