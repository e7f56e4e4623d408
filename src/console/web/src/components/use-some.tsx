import { Button } from '@mantine/core'
import { useState } from 'react'
import type { ReactNode } from 'react'
import { count } from '../format.ts'
import classes from './use-some.module.css'

/**
 * The first of many: thousands of rows hold up the whole page.
 * @param step - as many are shown at first, and as many more at each click
 * @returns those that are shown, and the button for more; null where there are none
 */
export function useShowMore<T>(all: readonly T[], step: number): readonly [some: readonly T[], more: ReactNode] {
  const [most, setMost] = useState(step)
  if (all.length <= most) return [all, null]
  const show = () => { setMost(most + step) }
  const more = <ShowMore shown={most} of={all.length} step={step} show={show} />
  return [all.slice(0, most), more]
}

export interface ShowMoreProps {
  readonly shown: number
  readonly of: number
  /** As many more at a click. */
  readonly step: number
  readonly show: () => void
}

/** Says that not all is shown, with the button for more. */
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
