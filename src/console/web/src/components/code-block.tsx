import type { ReactNode } from 'react'
import classes from './code-block.module.css'

export interface CodeBlockProps {
  /** What it is, for those who cannot see where it stands. */
  readonly label: string
  /** `tall` may fill the page, `bounded` scrolls within its own height, `bare` has no frame. */
  readonly form?: 'tall' | 'bounded' | 'bare'
  readonly children: ReactNode
}

/** Code or data as it is, in its own lines. */
export function CodeBlock({ label, form = 'tall', children }: CodeBlockProps) {
  return (
    // A region that scrolls has to be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className={`${classes.block} ${classes[form]}`} tabIndex={0} aria-label={label}>
      <pre><code>{children}</code></pre>
    </section>
  )
}
