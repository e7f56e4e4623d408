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
export function useSome<T>(all: readonly T[], step: number): readonly [some: readonly T[], more: ReactNode] {
  const [most, setMost] = useState(step)
  const rest = all.length - most
  if (rest <= 0) return [all, null]
  const more = (
    <div className={classes.more}>
      <Button variant="default" size="sm" onClick={() => { setMost(most + step) }}>
        Show {count(Math.min(step, rest))} more
      </Button>
      <span>{count(most)} of {count(all.length)} shown</span>
    </div>
  )
  return [all.slice(0, most), more]
}
