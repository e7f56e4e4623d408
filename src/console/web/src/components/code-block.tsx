import type { ReactNode } from 'react'
import classes from './code-block.module.css'

export interface CodeBlockProps {
  /** Label for screen readers. */
  readonly label: string
  /** `tall` may fill the page, `bounded` scrolls within its own height, `bare` has no frame. */
  readonly form?: 'tall' | 'bounded' | 'bare'
  readonly children: ReactNode
}

/** Preformatted code or data. An element with `data-number` is a line with that number before it. */
export function CodeBlock({ label, form = 'tall', children }: CodeBlockProps) {
  return (
    // A scrollable region must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className={`${classes.block} ${classes[form]}`} tabIndex={0} aria-label={label}>
      <pre><code>{children}</code></pre>
    </section>
  )
}
