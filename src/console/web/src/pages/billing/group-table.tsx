import { TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { useState, type ReactNode } from 'react'
import type { ResponseOf } from '../../api.ts'
import { Swatch } from '../../components/charts/chart.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Share } from '../../components/charts/meter.tsx'
import { Cost, Money, columnDecimals } from '../../components/money.tsx'
import { Section } from '../../components/page/page.tsx'
import { Pager } from '../../components/pager.tsx'
import { Empty } from '../../components/page/states.tsx'
import { approximate, count, counted } from '../../format.ts'
import classes from './group-table.module.css'
import { groupId, groupText, labelOf, nameOf } from './names.ts'
import { colourOf } from './spend-chart.tsx'
import type { TableState } from './table-state.ts'

type Billing = ResponseOf<'GET /billing'>
type Row = Billing['groups'][number]
type Figures = Billing['total']

/** Number of groups on a page. */
export const PAGE_SIZE = 50

/** ms without a key stroke after which the search starts. */
const PAUSE_MS = 250

export interface GroupTableProps {
  readonly billing: Billing
  /** The search text, the order, and the page. */
  readonly state: TableState
  readonly change: (state: Partial<TableState>) => void
  /** Link to the requests of a group; null = the Logs page cannot filter by the group. */
  readonly href: (names: Row['names']) => string | null
}

/** The spend of each group, and the total. The amounts add up exactly to the total. */
export function GroupTable({ billing, state, change, href }: GroupTableProps) {
  const { by, groups, groups_total } = billing
  const label = `Spend by ${groupText(by)}`
  return (
    <Section title={label} flush actions={<SearchInput text={state.search} change={change} />}
      about={billing.missing_requests > 0
        ? `Without ${counted(billing.missing_requests, 'request')} whose rows have expired`
        : 'Select a row to see its requests. The total covers all rows'}>
      {groups.length === 0
        ? <Empty title={state.search === '' ? 'No requests in this time range' : 'No matching names'} />
        : <DataTable label={label} rows={groups} columns={columnsOf(billing)} fixed
            id={({ names }) => groupId(names)} href={({ names }) => href(names)} totalLabel="Total"
            sorted={{ order: state.order, choose: order => { change({ order, offset: 0 }) } }} />}
      <Pager offset={state.offset} limit={PAGE_SIZE} total={groups_total} go={offset => { change({ offset }) }} />
    </Section>
  )
}

function SearchInput({ text, change }: { readonly text: string; readonly change: GroupTableProps['change'] }) {
  const [typed, setTyped] = useState(text)
  const search = useDebouncedCallback((value: string) => { change({ search: value.trim(), offset: 0 }) }, PAUSE_MS)
  return (
    <TextInput size="sm" aria-label="Search names" placeholder="Search names" value={typed}
      leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
      onChange={({ currentTarget: { value } }) => {
        setTyped(value)
        search(value)
      }} />
  )
}

function columnsOf(billing: Billing): Column<Row>[] {
  const { by, groups, total, charted } = billing
  const dimensions = by.split(',')
  const ranks = new Map(charted.map(({ names }, rank) => [groupId(names), rank]))
  const places = columnDecimals([total.cost_usd, ...groups.map(({ figures }) => figures.cost_usd)])
  const estimatedPlaces = columnDecimals([
    total.estimated_cost_usd, ...groups.map(({ figures }) => figures.estimated_cost_usd),
  ])
  const whole = approximate(total.cost_usd)
  const numbers = (
    id: keyof Figures & `${string}${'requests' | 'errors' | 'tokens'}`, heading: string,
  ): Column<Row> => ({
    id, title: heading, align: 'right', total: count(total[id]),
    cell: ({ figures }) => count(figures[id]), sort: ({ figures }) => figures[id],
  })
  const nameColumn = (dimension: string, n: number, content: (row: Row, name: string) => ReactNode): Column<Row> => ({
    id: n === 0 ? 'name' : dimension, title: labelOf(dimension), long: 'clip',
    cell: row => content(row, nameOf(dimension, row.names[n] ?? null)),
    ...n === 0 && { sort: () => '' },
  })
  return [
    ...dimensions.map((dimension, n) => nameColumn(dimension, n, ({ names }, name) => (n > 0 ? <span title={name}>{name}</span> : (
      <span className={classes.name} title={name}>
        <Swatch colour={colourOf(ranks.get(groupId(names)))} /><span>{name}</span>
      </span>
    )))),
    {
      id: 'cost', title: 'Spend', align: 'right', total: <Cost of={total} places={places} />,
      cell: ({ figures }) => <Cost of={figures} places={places} />,
      sort: ({ figures }) => approximate(figures.cost_usd),
    },
    {
      id: 'share', title: 'Share', total: '',
      cell: ({ figures }) => <Share of={whole === 0 ? 0 : approximate(figures.cost_usd) / whole} />,
      deskOnly: true,
    },
    numbers('requests', 'Requests'),
    numbers('errors', 'Errors'),
    numbers('input_tokens', 'Input tokens'),
    numbers('cached_input_tokens', 'Cached'),
    numbers('output_tokens', 'Output tokens'),
    {
      id: 'estimated_cost', title: 'Estimated', align: 'right',
      total: <Money usd={total.estimated_cost_usd} places={estimatedPlaces} />,
      cell: ({ figures }) => <Money usd={figures.estimated_cost_usd} places={estimatedPlaces} />,
      sort: ({ figures }) => approximate(figures.estimated_cost_usd),
    },
    numbers('unpriced_requests', 'Unpriced'),
  ]
}
