import type { ResponseOf } from '../../api.ts'
import { Bars, ChartSection, Legend, type Point, type Series } from '../../components/charts/chart.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { Cost, columnDecimals } from '../../components/money.tsx'
import { Empty } from '../../components/page/states.tsx'
import { approximate, costText, dayShort, money, moneyTick } from '../../format.ts'
import { groupId, groupName } from './names.ts'

type Billing = ResponseOf<'GET /billing'>
type Day = Billing['days'][number]

const OTHERS: Series = { id: 'others', label: 'All others', colour: 'var(--chart-rest)' }

/** The colour of a group in the chart and the table. @param rank - position by spend, from 0; undefined = the group is not in the chart */
export function colourOf(rank: number | undefined): string {
  return rank === undefined ? OTHERS.colour : `var(--chart-${rank + 1})`
}

export interface SpendChartProps {
  readonly billing: Billing
  /** Opens the requests of a part of a bar. If the names are undefined, opens all requests of the day. */
  readonly open: (day: string, names: Day['parts'][number]['names'] | undefined) => void
  readonly hrefOfDay: (day: string) => string | null
  /** Shows only the days from the first to the last day. */
  readonly zoom: (firstDay: string, lastDay: string) => void
}

/** Spend by day, stacked by group. */
export function SpendChart({ billing, open, hrefOfDay, zoom }: SpendChartProps) {
  const { days, charted, by } = billing
  const now = Date.parse(billing.to)
  const series = charted.map(({ names }, index) => ({
    id: `s${index}`, label: groupName(by, names), colour: colourOf(index),
  }))
  const withOthers = days.some(day => approximate(day.others_cost_usd) !== 0)
  const all: readonly Series[] = [
    // The legend leaves out groups without cost, because they have no bar.
    ...series.filter((_, index) => approximate(charted[index]?.cost_usd ?? null) !== 0),
    ...withOthers ? [OTHERS] : [],
  ]
  const namesOf = ({ id }: Series) => charted[Number(id.slice(1))]?.names
  const costsOf = new Map(days.map(day => [day.day, new Map(day.parts.map(part => [groupId(part.names), part.cost_usd]))]))
  const costOf = (day: Day, each: Series) => each.id === OTHERS.id ? day.others_cost_usd
    : costsOf.get(day.day)?.get(groupId(namesOf(each) ?? [])) ?? '0'
  const byDay = new Map(days.map(day => [day.day, day]))
  const isEmpty = days.every(({ cost_usd }) => approximate(cost_usd) === 0)
  const tip = (point: Point) => {
    const day = byDay.get(point.id)
    if (!day) return { title: point.id, parts: [] }
    const parts = all.map(each => ({ series: each, usd: costOf(day, each) }))
      .filter(({ usd }) => approximate(usd) !== 0)
      .map(({ series: each, usd }) => ({ series: each, text: money(usd) }))
    return { title: `${point.id} UTC`, parts: parts.toReversed(), total: costText(day) }
  }
  return (
    <ChartSection title="Spend by day" about="UTC days. Select a bar to see its requests; drag to zoom"
      table={<DayTable days={days} hrefOfDay={hrefOfDay} />}>
      {isEmpty
        ? <Empty title="No spend in this time range" />
        : <>
            <Legend series={all} />
            <Bars height={260} series={all} tick={day => dayShort(day, now)} scale={moneyTick} divisible
              tip={tip} zoom={(first, last) => { zoom(first.id, last.id) }}
              points={days.map(day => ({
                id: day.day,
                values: Object.fromEntries(all.map(each => [each.id, approximate(costOf(day, each))])),
              }))}
              open={(point, each) => { open(point.id, each.id === OTHERS.id ? undefined : namesOf(each)) }} />
          </>}
    </ChartSection>
  )
}

function DayTable(
  { days, hrefOfDay }: { readonly days: readonly Day[]; readonly hrefOfDay: (day: string) => string | null },
) {
  const places = columnDecimals(days.map(({ cost_usd }) => cost_usd))
  return (
    <DataTable label="Spend by day" rows={days} id={({ day }) => day} href={({ day }) => hrefOfDay(day)}
      columns={[
        { id: 'day', title: 'Day (UTC)', cell: ({ day }) => day, sort: ({ day }) => day },
        {
          id: 'spend', title: 'Spend', align: 'right', sort: ({ cost_usd }) => approximate(cost_usd),
          cell: day => <Cost of={day} places={places} />,
        },
      ]} />
  )
}
