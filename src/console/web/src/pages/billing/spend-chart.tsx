import type { ResponseOf } from '../../api.ts'
import { Bars, ChartSection, Legend } from '../../components/chart.tsx'
import type { Point, Series } from '../../components/chart.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { Money, columnDecimals } from '../../components/money.tsx'
import { Empty } from '../../components/states.tsx'
import { approximate, dayShort, money, moneyTick } from '../../format.ts'
import { nameOf } from './names.ts'

type Billing = ResponseOf<'GET /billing'>
type Day = Billing['days'][number]

const COLOURS = 12
const OTHERS: Series = { id: 'others', label: 'All others', colour: 'var(--chart-rest)' }

/** The colour of a group in the chart and the table. @param index - rank by spend, from 0 */
export function colourOf(index: number): string {
  return index < COLOURS ? `var(--chart-${index + 1})` : OTHERS.colour
}

export interface SpendChartProps {
  readonly billing: Billing
  /** Opens the requests of a part of a bar; all requests of the day if the name is undefined. */
  readonly open: (day: string, name: string | null | undefined) => void
  readonly hrefOfDay: (day: string) => string
}

/** Spend by day, stacked by group. */
export function SpendChart({ billing, open, hrefOfDay }: SpendChartProps) {
  const { days, groups, by } = billing
  const now = Date.parse(billing.to)
  const shown = groups.slice(0, COLOURS)
  const series = shown.map(({ name }, index) => ({
    id: `s${index}`, label: nameOf(by, name), colour: colourOf(index),
  }))
  const withOthers = days.some(day => approximate(day.others_cost_usd) !== 0)
  const all: readonly Series[] = [
    // Groups without cost have no bar, so they are left out of the legend too.
    ...series.filter((_, index) => approximate(shown[index]?.figures.cost_usd ?? '0') !== 0),
    ...withOthers ? [OTHERS] : [],
  ]
  const costOf = (day: Day, { id }: Series) => id === OTHERS.id ? day.others_cost_usd
    : day.parts.find(({ name }) => name === shown[Number(id.slice(1))]?.name)?.cost_usd ?? '0'
  const byDay = new Map(days.map(day => [day.day, day]))
  const isEmpty = days.every(({ cost_usd }) => approximate(cost_usd) === 0)
  const tip = (point: Point) => {
    const day = byDay.get(point.id)
    if (!day) return { title: point.id, parts: [] }
    const parts = all.map(each => ({ series: each, usd: costOf(day, each) }))
      .filter(({ usd }) => approximate(usd) !== 0)
      .map(({ series: each, usd }) => ({ series: each, text: money(usd) }))
    return { title: `${point.id} UTC`, parts: parts.toReversed(), total: money(day.cost_usd) }
  }
  return (
    <ChartSection title="Spend by day" about="UTC days. Select a bar to see its requests"
      table={<DayTable days={days} hrefOfDay={hrefOfDay} />}>
      {isEmpty
        ? <Empty title="No spend in this time range" />
        : <>
            <Legend series={all} />
            <Bars height={260} series={all} tick={day => dayShort(day, now)} scale={moneyTick} divisible
              tip={tip}
              points={days.map(day => ({
                id: day.day,
                values: Object.fromEntries(all.map(each => [each.id, approximate(costOf(day, each))])),
              }))}
              open={(point, { id }) => {
                open(point.id, id === OTHERS.id ? undefined : shown[Number(id.slice(1))]?.name)
              }} />
          </>}
    </ChartSection>
  )
}

function DayTable(
  { days, hrefOfDay }: { readonly days: readonly Day[]; readonly hrefOfDay: (day: string) => string },
) {
  const places = columnDecimals(days.map(({ cost_usd }) => cost_usd))
  return (
    <DataTable label="Spend by day" rows={days} id={({ day }) => day} href={({ day }) => hrefOfDay(day)}
      columns={[
        { id: 'day', title: 'Day (UTC)', cell: ({ day }) => day, sort: ({ day }) => day },
        {
          id: 'spend', title: 'Spend', align: 'right', sort: ({ cost_usd }) => approximate(cost_usd),
          cell: ({ cost_usd }) => <Money usd={cost_usd} places={places} />,
        },
      ]} />
  )
}
