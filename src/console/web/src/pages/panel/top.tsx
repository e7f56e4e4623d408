import type { ReactNode } from 'react'
import type { ResponseOf } from '../../api.ts'
import { NameLabel } from '../../components/badges.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { Section } from '../../components/page/page.tsx'
import { Empty } from '../../components/page/states.tsx'
import { approximate, costText, countShort, moneyShort, percent } from '../../format.ts'

type Top = ResponseOf<'GET /panel'>['top_keys']

export interface TopProps {
  readonly title: string
  readonly kind: 'key' | 'model'
  readonly rows: Top
  /** The total spend, from which the shares are computed. */
  readonly spend: string | null
  readonly href: (name: string | null) => string
  readonly actions?: ReactNode
}

/** The keys or models with the highest spend. */
export function TopList({ title, kind, rows, spend, href, actions }: TopProps) {
  const whole = approximate(spend)
  return (
    <Section title={title} about="By spend in the selected time range" flush actions={actions}>
      {rows.length === 0
        ? <Empty title="No requests in this time range" />
        : <DataTable label={title} rows={rows} id={row => `${row.name}`} phone="scroll"
            href={row => href(row.name)}
            columns={[
              {
                id: 'name', title: kind === 'key' ? 'Key' : 'Model', long: 'clip',
                cell: row => <NameLabel kind={kind} name={row.name} />,
              },
              {
                id: 'requests', title: 'Requests', align: 'right',
                cell: row => countShort(row.figures.requests),
              },
              {
                id: 'tokens', title: 'Tokens', align: 'right', deskOnly: true,
                cell: row => countShort(row.figures.input_tokens + row.figures.output_tokens),
              },
              { id: 'spend', title: 'Spend', align: 'right', cell: row => costText(row.figures, moneyShort) },
              {
                id: 'share', title: 'Share', align: 'right',
                cell: row => percent(whole === 0 ? 0 : approximate(row.figures.cost_usd) / whole),
              },
            ]} />}
    </Section>
  )
}
