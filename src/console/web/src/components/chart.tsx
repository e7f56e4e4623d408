import { ActionIcon, Tooltip } from '@mantine/core'
import { BarChart } from '@mantine/charts'
import { IconChartBar, IconTable } from '@tabler/icons-react'
import { useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { ReferenceArea } from 'recharts'
import classes from './chart.module.css'
import { Section } from './page.tsx'

export interface Series {
  /** The key in a point's `values`. */
  readonly id: string
  readonly label: string
  readonly colour: string
}

/** One bar, with a number for each series. */
export interface Point {
  readonly id: string
  readonly values: Readonly<Record<string, number>>
}

export interface BarsProps {
  readonly points: readonly Point[]
  /** From bottom to top. */
  readonly series: readonly Series[]
  readonly height: number
  /** Label below a bar. */
  readonly tick: (id: string) => string
  /** Short label at the value axis. */
  readonly scale: (value: number) => string
  /** Values can be fractions, so the axis may have labels between whole numbers. */
  readonly divisible?: boolean
  /** Tooltip of a bar: every part with its exact value. */
  readonly tip: (point: Point) => {
    title: string
    parts: readonly { series: Series; text: string }[]
    total?: string
  }
  /** Called on a click on a part of a bar. The table has the same links for keyboard users. */
  readonly open?: (point: Point, series: Series) => void
  /** Called after the pointer was dragged over some bars, with the first and the last. */
  readonly zoom?: (first: Point, last: Point) => void
  /** Charts with the same name show their tooltips together. */
  readonly sync?: string
}

interface Datum {
  readonly point: Point
}

/** Stacked bars over time. Hidden from screen readers: ChartSection has the same data as a table. */
export function Bars(props: BarsProps) {
  const { points, series, height, tick, scale, divisible = false, tip, open, zoom, sync } = props
  const brush = useBrush(points, zoom)
  const data = points.map(point => ({ id: point.id, point, ...point.values }))
  return (
    <div className={`${classes.chart} ${open ? classes.link : ''}`} aria-hidden>
      <BarChart
        h={height} data={data} dataKey="id" type="stacked"
        series={series.map(({ id, label, colour }) => ({ name: id, label, color: colour }))}
        gridAxis="x" tickLine="none" strokeDasharray="0" gridColor="var(--chart-grid)"
        textColor="var(--ink-dim)"
        cursorFill="var(--chart-cursor)" maxBarWidth={44}
        barChartProps={{
          accessibilityLayer: false, barCategoryGap: '18%', ...sync !== undefined && { syncId: sync },
          ...brush.handlers,
        }}
        barProps={({ name }) => ({
          isAnimationActive: false,
          onClick: bar => {
            const part = series.find(({ id }) => id === name)
            if (part) open?.((bar.payload as Datum).point, part)
          },
        })}
        xAxisProps={{
          tickFormatter: tick, minTickGap: 28,
          interval: 'equidistantPreserveStart', tickMargin: 6, height: 26,
        }}
        yAxisProps={{ tickFormatter: scale, width: 'auto', tickCount: 4, allowDecimals: divisible }}
        tooltipProps={{
          isAnimationActive: false,
          allowEscapeViewBox: { x: false, y: true },
          content: ({ active, payload }) => {
            const datum = payload?.[0]?.payload as Datum | undefined
            return active && datum ? <Tip {...tip(datum.point)} /> : null
          },
        }}
      >
        {brush.area && <ReferenceArea x1={brush.area[0]} x2={brush.area[1]} fill="var(--accent)" fillOpacity={0.15} />}
      </BarChart>
    </div>
  )
}

/** Selects a range of bars by dragging. The time range picker and the table do the same for keyboard users. */
function useBrush(points: readonly Point[], zoom: BarsProps['zoom']) {
  const from = useRef<string | null>(null)
  const [area, setArea] = useState<readonly [string, string] | null>(null)
  if (!zoom) return { area: null, handlers: {} }
  const idOf = ({ activeLabel }: { activeLabel?: string | number | undefined }) =>
    (activeLabel === undefined ? null : String(activeLabel))
  const end = () => {
    from.current = null
    setArea(null)
  }
  return {
    area,
    handlers: {
      onMouseDown: (state: Parameters<typeof idOf>[0]) => { from.current = idOf(state) },
      onMouseMove: (state: Parameters<typeof idOf>[0]) => {
        const id = idOf(state)
        if (from.current !== null && id !== null && (area !== null || id !== from.current)) setArea([from.current, id])
      },
      onMouseUp: () => {
        const selected = area?.map(id => points.findIndex(point => point.id === id)).sort((a, b) => a - b) ?? []
        const [first, last] = selected.map(index => points[index])
        end()
        if (first && last && first !== last) zoom(first, last)
      },
      onMouseLeave: end,
    },
  }
}

function Tip({ title, parts, total }: ReturnType<BarsProps['tip']>) {
  return (
    <div className={classes.tip}>
      <strong>{title}</strong>
      {parts.map(({ series, text }) => (
        <div key={series.id}>
          <Swatch colour={series.colour} /><span>{series.label}</span><span>{text}</span>
        </div>
      ))}
      {total !== undefined && <div><span /><span>Total</span><span>{total}</span></div>}
    </div>
  )
}

export function Swatch({ colour }: { readonly colour: string }) {
  return <span className={classes.swatch} style={{ '--colour': colour }} aria-hidden />
}

export function Legend({ series }: { readonly series: readonly Series[] }) {
  return (
    <ul className={classes.legend}>
      {series.map(({ id, label, colour }) => (
        <li key={id}><Swatch colour={colour} /><span title={label}>{label}</span></li>
      ))}
    </ul>
  )
}

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
