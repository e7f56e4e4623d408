import { CloseButton } from '@mantine/core'
import { NameLabel, type Kind } from '../../components/badges.tsx'
import classes from './filters.module.css'

export type Filter = Partial<Record<Kind, string>>

export interface FiltersProps {
  readonly filter: Filter
  readonly remove: (kind: Kind) => void
}

/** The active filters, each with a button that removes it. */
export function Filters({ filter, remove }: FiltersProps) {
  const entries = Object.entries(filter) as [Kind, string][]
  if (entries.length === 0) return null
  return (
    <ul className={classes.chips} aria-label="Filters">
      {entries.map(([kind, name]) => (
        <li key={kind} className={classes.chip}>
          <NameLabel kind={kind} name={name} />
          <CloseButton size="xs" radius="xl" aria-label={`Remove filter: ${kind} ${name}`}
            onClick={() => { remove(kind) }} />
        </li>
      ))}
    </ul>
  )
}
