import { CodeBlock } from '../../components/code-block.tsx'
import classes from './configuration.module.css'
import { tokens } from './tokens.ts'

export interface YamlProps {
  readonly text: string
  readonly label: string
  /** Number of the line, from 1, that is highlighted and scrolled into view. */
  readonly marked?: number
}

/** Shows a configuration with line numbers. */
export function Yaml({ text, label, marked }: YamlProps) {
  const lines = text.replace(/\n$/, '').split('\n')
  return (
    <CodeBlock label={`Contents of ${label}`} form="bare">
      {lines.map((content, n) => {
        const isMarked = n + 1 === marked
        return (
          // A line is identified only by its number.
          // oxlint-disable-next-line react/no-array-index-key
          <span key={n} ref={isMarked ? scrollTo : null} data-number={n + 1} aria-current={isMarked ? 'location' : undefined}
            className={isMarked ? `${classes.line} ${classes.marked}` : classes.line}>
            {tokens(content).map(({ kind, text: piece }) =>
              <span key={kind} className={classes[kind]}>{piece}</span>)}
            {'\n'}
          </span>
        )
      })}
    </CodeBlock>
  )
}

/** Scrolls to the marked line. Called again when another line is marked. */
function scrollTo(line: HTMLElement | null): void {
  line?.scrollIntoView({ block: 'center' })
}
