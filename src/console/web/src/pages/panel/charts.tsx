import { useState } from 'react'
import type { ResponseOf } from '../../api.ts'
import { Bars, ChartSection, type Point, type Series } from '../../components/charts/chart.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Columns } from '../../components/page/page.tsx'
import {
  approximate, costText, count, countShort, counted, dayShort, dayUtc, hourUtc, minuteUtc, moneyTick, percent,
} from '../../format.ts'

type Panel = ResponseOf<'GET /panel'>
type Slice = Panel['slices'][number]

const OK: Series = { id: 'ok', label: 'No error', colour: 'var(--chart-1)' }
const ERRORS: Series = { id: 'errors', label: 'Errors', colour: 'var(--chart-bad)' }
const TOKENS: Series = { id: 'tokens', label: 'Tokens', colour: 'var(--chart-2)' }
const SPEND: Series = { id: 'spend', label: 'Spend', colour: 'var(--chart-6)' }

const HEIGHT = 190

export interface TrafficChartsProps {
  readonly panel: Panel
  /** Opens the requests in a bar. */
  readonly open: (from: string, to: string, failed: boolean) => void
  /** Shows only a part of the time range. */
  readonly zoom: (from: string, to: string) => void
  /** Returns the link to the panel of a part of the time range. */
  readonly hrefOf: (from: string, to: string) => string
}

const LENGTHS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const

/** Charts of requests, tokens and spend, per minute, hour or day. Dragging over bars shows the range of these bars. */
export function TrafficCharts({ panel, open, zoom, hrefOf }: TrafficChartsProps) {
  const { slices, slice } = panel
  const [hovered, setHovered] = useState<string | null>(null)
  const bySlice = new Map(slices.map(each => [each.at, each]))
  const now = Date.parse(panel.now.to)
  const ofPoint = ({ id }: Point) => bySlice.get(id)
    ?? { at: id, requests: 0, errors: 0, tokens: 0, cost_usd: '0', unpriced_requests: 0 }
  const title = ({ id }: Point) => `${slice === 'day' ? dayUtc(id) : minuteUtc(id)} UTC`
  // The first bar of a day is labelled with the date; other bars are labelled with the time.
  const tick = (id: string) => (slice === 'day' || hourUtc(id) === '00:00' ? dayShort(id, now) : hourUtc(id))
  const endOf = (id: string) => new Date(Date.parse(id) + LENGTHS[slice]).toISOString()
  const openSlice = (point: Point, series: Series) => { open(point.id, endOf(point.id), series.id === ERRORS.id) }
  const common = {
    tick, height: HEIGHT, hover: { id: hovered, set: setHovered }, open: openSlice,
    zoom: (first: Point, last: Point) => { zoom(first.id, endOf(last.id)) },
  }
  const table = (
    <SliceTable slices={slices} slice={slice} href={({ at }) => (slice === 'minute' ? null : hrefOf(at, endOf(at)))} />
  )
  const about = `Per ${slice} (UTC)`
  const unpriced = panel.now.figures.unpriced_requests
  return (
    <Columns least={17}>
      <ChartSection title="Requests and errors" about={`${about}. Drag to zoom`} table={table}>
        <Bars {...common} series={[OK, ERRORS]} scale={countShort}
          points={slices.map(({ at, requests, errors }) => ({
            id: at, values: { ok: requests - errors, errors },
          }))}
          tip={point => {
            const { requests, errors } = ofPoint(point)
            const share = requests === 0 ? 0 : errors / requests
            return {
              title: title(point),
              parts: [
                { series: OK, text: count(requests - errors) },
                { series: ERRORS, text: `${count(errors)} (${percent(share)})` },
              ],
              total: count(requests),
            }
          }} />
      </ChartSection>
      <ChartSection title="Tokens" about={about} table={table}>
        <Bars {...common} series={[TOKENS]} scale={countShort}
          points={slices.map(({ at, tokens }) => ({ id: at, values: { tokens } }))}
          tip={point => ({
            title: title(point), parts: [{ series: TOKENS, text: count(ofPoint(point).tokens) }],
          })} />
      </ChartSection>
      <ChartSection title="Spend" about={unpriced === 0 ? about : `${about}. Cost unknown for ${counted(unpriced, 'request')}`}
        table={table}>
        <Bars {...common} series={[SPEND]} scale={moneyTick} divisible
          points={slices.map(({ at, cost_usd }) => ({ id: at, values: { spend: approximate(cost_usd) } }))}
          tip={point => ({
            title: title(point), parts: [{ series: SPEND, text: costText(ofPoint(point)) }],
          })} />
      </ChartSection>
    </Columns>
  )
}

const COLUMNS: readonly Column<Slice>[] = [
  { id: 'requests', title: 'Requests', align: 'right', cell: row => count(row.requests) },
  { id: 'errors', title: 'Errors', align: 'right', cell: row => count(row.errors) },
  { id: 'tokens', title: 'Tokens', align: 'right', cell: row => count(row.tokens) },
  { id: 'spend', title: 'Spend', align: 'right', cell: row => costText(row) },
]

interface SliceTableProps extends Pick<Panel, 'slices' | 'slice'> {
  readonly href: (slice: Slice) => string | null
}

const HEADINGS = { minute: 'Minute (UTC)', hour: 'Hour (UTC)', day: 'Day (UTC)' } as const

/** The data of the charts as a table. A row opens the panel of its period. */
function SliceTable({ slices, slice, href }: SliceTableProps) {
  const at: Column<Slice> = {
    id: 'at', title: HEADINGS[slice], cell: row => slice === 'day' ? dayUtc(row.at) : minuteUtc(row.at),
  }
  return <DataTable label={`Traffic by ${slice}`} rows={slices} columns={[at, ...COLUMNS]}
    id={row => row.at} href={href} />
}
