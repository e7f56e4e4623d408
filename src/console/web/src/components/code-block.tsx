import type { ReactNode } from 'react'
import classes from './code-block.module.css'

export interface CodeBlockProps {
  /** Label for screen readers. */
  readonly label: string
  /** `tall` may fill the page, `bounded` has its own height and scrolls, `bare` has no frame. */
  readonly form?: 'tall' | 'bounded' | 'bare'
  readonly children: ReactNode
}

/** Preformatted code or data. An element with `data-number` is a line; its number is shown in front of it. */
export function CodeBlock({ label, form = 'tall', children }: CodeBlockProps) {
  return (
    // Keyboard users must be able to focus a scrollable region.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className={`${classes.block} ${classes[form]}`} tabIndex={0} aria-label={label}>
      <pre><code>{children}</code></pre>
    </section>
  )
}
