import { ActionIcon, Tooltip } from '@mantine/core'
import { IconChartBar, IconTable } from '@tabler/icons-react'
import { useState, type ReactNode } from 'react'
import classes from './chart.module.css'
import { Section } from '../page/page.tsx'

export { Bars, Legend, Swatch } from './bars.tsx'
export type { Point, Series } from './bars.tsx'

export interface ChartSectionProps {
  readonly title: string
  readonly about?: ReactNode
  readonly actions?: ReactNode
  /** The same data as a table. */
  readonly table: ReactNode
  readonly children: ReactNode
}

/** A chart and its table, with a button to switch between them. */
export function ChartSection({ title, about, actions, table, children }: ChartSectionProps) {
  const [isTable, setTable] = useState(false)
  const label = isTable ? 'Show as chart' : 'Show as table'
  const Icon = isTable ? IconChartBar : IconTable
  return (
    <Section title={title} about={about} flush={isTable} actions={
      <div className={classes.actions}>
        {actions}
        <Tooltip label={label}>
          <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`${label}: ${title}`}
            onClick={() => { setTable(!isTable) }}>
            <Icon size={16} stroke={1.6} />
          </ActionIcon>
        </Tooltip>
      </div>
    }>
      {isTable ? table : children}
    </Section>
  )
}
