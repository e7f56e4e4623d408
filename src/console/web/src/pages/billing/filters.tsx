import { CloseButton } from '@mantine/core'
import { NameLabel } from '../../components/badges.tsx'
import type { Kind } from '../../components/badges.tsx'
import classes from './filters.module.css'

export type Filter = Partial<Record<Kind, string>>

/** What the page is narrowed to; each can be taken away. */
export function Filters({ filter, drop }: { readonly filter: Filter; readonly drop: (kind: Kind) => void }) {
  const entries = Object.entries(filter) as [Kind, string][]
  if (entries.length === 0) return null
  return (
    <ul className={classes.chips} aria-label="Narrowed to">
      {entries.map(([kind, name]) => (
        <li key={kind} className={classes.chip}>
          <NameLabel kind={kind} name={name} />
          <CloseButton size="xs" radius="xl" aria-label={`Not only ${kind} ${name}`}
            onClick={() => { drop(kind) }} />
        </li>
      ))}
    </ul>
  )
}
