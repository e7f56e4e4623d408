import type { ResponseOf } from '../../api.ts'
import { Swatch } from '../../components/chart.tsx'
import { DataTable } from '../../components/data-table.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Share } from '../../components/meter.tsx'
import { Money, columnDecimals } from '../../components/money.tsx'
import { Section } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { approximate, count } from '../../format.ts'
import classes from './group-table.module.css'
import { GROUPS, nameOf } from './names.ts'
import { colourOf } from './spend-chart.tsx'

type Billing = ResponseOf<'GET /billing'>
type Row = Billing['groups'][number] & { readonly rank: number }
type Figures = Billing['total']

/** Groups shown at first. */
const STEP = 200

export interface GroupTableProps {
  readonly billing: Billing
  /** Link to the requests of a group. */
  readonly href: (name: string | null) => string
}

/** Spend by group, with the total. The rows add up to it exactly. */
export function GroupTable({ billing, href }: GroupTableProps) {
  const { by } = billing
  const title = GROUPS.find(({ value }) => value === by)?.label ?? by
  const rows = billing.groups.map((group, rank) => ({ ...group, rank }))
  return (
    <Section title={`Spend by ${by}`} flush
      about="Select a row to see its requests">
      {rows.length === 0
        ? <Empty title="No requests in this time range" />
        : <DataTable label={`Spend by ${by}`} rows={rows} columns={columnsOf(title, billing)}
            id={({ name }) => name ?? '\0'} href={({ name }) => href(name)}
            totalLabel="Total" step={STEP} />}
    </Section>
  )
}

function columnsOf(title: string, { by, groups, total }: Billing): Column<Row>[] {
  const places = columnDecimals([total.cost_usd, ...groups.map(({ figures }) => figures.cost_usd)])
  const estimatedPlaces = columnDecimals([
    total.estimated_cost_usd, ...groups.map(({ figures }) => figures.estimated_cost_usd),
  ])
  const whole = approximate(total.cost_usd)
  const numbers = (
    id: keyof Figures & `${string}${'requests' | 'tokens'}`, heading: string,
  ): Column<Row> => ({
    id, title: heading, align: 'right', total: count(total[id]),
    cell: ({ figures }) => count(figures[id]), sort: ({ figures }) => figures[id],
  })
  return [
    {
      id: 'name', title, long: 'clip', sort: ({ name }) => nameOf(by, name),
      cell: ({ name, rank }) => (
        <span className={classes.name}>
          <Swatch colour={colourOf(rank)} /><span>{nameOf(by, name)}</span>
        </span>
      ),
    },
    {
      id: 'spend', title: 'Spend', align: 'right', total: <Money usd={total.cost_usd} places={places} />,
      cell: ({ figures }) => <Money usd={figures.cost_usd} places={places} />,
      sort: ({ figures }) => approximate(figures.cost_usd),
    },
    {
      id: 'share', title: 'Share', total: '',
      cell: ({ figures }) => <Share of={whole === 0 ? 0 : approximate(figures.cost_usd) / whole} />,
      deskOnly: true,
    },
    numbers('requests', 'Requests'),
    numbers('input_tokens', 'Input tokens'),
    numbers('cached_input_tokens', 'Cached'),
    numbers('output_tokens', 'Output tokens'),
    {
      id: 'estimated', title: 'Estimated', align: 'right',
      total: <Money usd={total.estimated_cost_usd} places={estimatedPlaces} />,
      cell: ({ figures }) => <Money usd={figures.estimated_cost_usd} places={estimatedPlaces} />,
      sort: ({ figures }) => approximate(figures.estimated_cost_usd),
    },
    numbers('unpriced_requests', 'Unpriced'),
  ]
}
