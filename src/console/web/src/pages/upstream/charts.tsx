import type { UpstreamReport } from '../../../../api/upstream.ts'
import { Bars, ChartSection, Legend, type Point, type Series } from '../../components/charts/chart.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { count, countShort, dayShort, duration, hourUtc, minuteUtc } from '../../format.ts'

type Slice = UpstreamReport['slices'][number]
type Outcome = Exclude<keyof Slice['outcomes'], 'requests'>

const OUTCOMES: readonly (Series & { readonly id: Outcome })[] = [
  { id: 'complete', label: 'Complete', colour: 'var(--chart-1)' },
  { id: 'client_disconnected', label: 'Client disconnected', colour: 'var(--chart-rest)' },
  { id: 'provider_failures', label: 'Provider failures', colour: 'var(--chart-bad)' },
  { id: 'client_errors', label: 'Client errors', colour: 'var(--chart-3)' },
  { id: 'gateway_refusals', label: 'Refused by the gateway', colour: 'var(--chart-6)' },
]
const FIRST_BYTE: Series = { id: 'first_byte', label: 'First byte, p95', colour: 'var(--chart-2)' }
const HEIGHT = 200

interface ChartProps {
  readonly report: UpstreamReport
  /** Shows only a part of the time range. */
  readonly zoom: (from: string, to: string) => void
}

export interface OutcomeChartProps extends ChartProps {
  /** Opens the requests in a bar. */
  readonly open: (from: string, to: string, failed: boolean) => void
}

/** How requests ended over time, by who caused the failure. */
export function OutcomeChart({ report, open, zoom }: OutcomeChartProps) {
  const { common, sliceOf, endOf } = sharedProps(report, zoom)
  const columns: Column<Slice>[] = [
    timeColumn,
    ...OUTCOMES.map(({ id, label }): Column<Slice> => (
      { id, title: label, align: 'right', cell: ({ outcomes }) => count(outcomes[id]) })),
  ]
  return (
    <ChartSection title="How requests ended" about={`${per(report)}. Drag to zoom`}
      table={<DataTable label="How requests ended" rows={report.slices} columns={columns} id={({ at }) => at} />}>
      <Legend series={OUTCOMES} />
      <Bars {...common} series={OUTCOMES} scale={countShort}
        points={report.slices.map(({ at, outcomes }) => ({ id: at, values: { ...outcomes } }))}
        open={({ id }, series) => { open(id, endOf(id), series.id !== 'complete' && series.id !== 'client_disconnected') }}
        tip={({ id }) => {
          const outcomes = sliceOf(id)?.outcomes
          return {
            title: `${minuteUtc(id)} UTC`,
            parts: outcomes ? OUTCOMES.filter(each => outcomes[each.id] > 0)
              .map(each => ({ series: each, text: count(outcomes[each.id]) })) : [],
            total: count(outcomes?.requests ?? 0),
          }
        }} />
    </ChartSection>
  )
}

/** The 95th percentile of the time to the first byte. The table has all percentiles. */
export function LatencyChart({ report, zoom }: ChartProps) {
  const { common, sliceOf } = sharedProps(report, zoom)
  const percentiles = (kind: 'first_byte' | 'duration', title: string): Column<Slice>[] =>
    (['p50_ms', 'p95_ms', 'p99_ms'] as const).map(id => (
      { id: `${kind} ${id}`, title: `${title} ${id.slice(0, 3)}`, align: 'right', cell: slice => duration(slice[kind][id]) }))
  return (
    <ChartSection title="Time to first byte" about={`95th percentile. ${per(report)}. The table has all percentiles, and the duration`}
      table={<DataTable label="Latency" rows={report.slices} id={({ at }) => at}
        columns={[timeColumn, ...percentiles('first_byte', 'First byte'), ...percentiles('duration', 'Duration')]} />}>
      <Bars {...common} series={[FIRST_BYTE]} scale={duration}
        points={report.slices.map(({ at, first_byte }) => ({ id: at, values: { first_byte: first_byte.p95_ms ?? 0 } }))}
        tip={({ id }) => ({
          title: `${minuteUtc(id)} UTC`,
          parts: [{ series: FIRST_BYTE, text: duration(sliceOf(id)?.first_byte.p95_ms ?? null) }],
        })} />
    </ChartSection>
  )
}

const timeColumn: Column<Slice> = { id: 'at', title: 'Time (UTC)', cell: ({ at }) => minuteUtc(at) }

/** The period of one bar: `Per 15 min (UTC)`. */
function per({ slice_ms }: UpstreamReport): string {
  return `Per ${duration(slice_ms)} (UTC)`
}

/** The properties that both charts share. */
function sharedProps({ slices, slice_ms, to }: UpstreamReport, zoom: ChartProps['zoom']) {
  const byStart = new Map(slices.map(slice => [slice.at, slice]))
  const endOf = (id: string) => new Date(Date.parse(id) + slice_ms).toISOString()
  const now = Date.parse(to)
  return {
    sliceOf: (id: string) => byStart.get(id),
    endOf,
    common: {
      height: HEIGHT,
      tick: (id: string) => (hourUtc(id) === '00:00' ? dayShort(id, now) : hourUtc(id)),
      zoom: (first: Point, last: Point) => { zoom(first.id, endOf(last.id)) },
    },
  }
}
