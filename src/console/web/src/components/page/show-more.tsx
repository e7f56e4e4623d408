import { Button } from '@mantine/core'
import { useState, type ReactNode } from 'react'
import { count } from '../../format.ts'
import classes from './show-more.module.css'

/**
 * Shows only the first of many rows: thousands of rows make a page slow.
 * @param step - rows shown at first, and added by each click
 * @param form - `inline`: a small button among the rows
 * @returns the rows to show, and the button for more; null if all are shown
 */
export function useShowMore<T>(
  all: readonly T[], step: number, form: 'block' | 'inline' = 'block',
): readonly [shown: readonly T[], more: ReactNode] {
  const [limit, setLimit] = useState(step)
  if (all.length <= limit) return [all, null]
  const show = () => { setLimit(limit + step) }
  const more = form === 'inline'
    ? <Button variant="subtle" size="compact-xs" onClick={show}>Show {count(Math.min(step, all.length - limit))} more</Button>
    : <ShowMore shown={limit} of={all.length} step={step} show={show} />
  return [all.slice(0, limit), more]
}

export interface ShowMoreProps {
  readonly shown: number
  readonly of: number
  /** Rows added by a click. */
  readonly step: number
  readonly show: () => void
}

/** How many rows are shown, with a button for more. */
export function ShowMore({ shown, of: all, step, show }: ShowMoreProps) {
  return (
    <div className={classes.more}>
      <Button variant="default" size="sm" onClick={show}>
        Show {count(Math.min(step, all - shown))} more
      </Button>
      <span>{count(shown)} of {count(all)} shown</span>
    </div>
  )
}
