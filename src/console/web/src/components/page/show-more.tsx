import { Button } from '@mantine/core'
import { useState, type ReactNode } from 'react'
import { count } from '../../format.ts'
import classes from './show-more.module.css'

/**
 * Limits how many rows are shown, because thousands of rows make a page slow.
 * @param step - number of rows that are shown at first, and that each click adds
 * @param form - `inline`: a small button between the rows
 * @returns the rows to show, and a button that shows more; the button is null if all rows are shown
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
  /** Number of rows that a click adds. */
  readonly step: number
  readonly show: () => void
}

/** Shows the number of visible rows, and a button that shows more. */
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
