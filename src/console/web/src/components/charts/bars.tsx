import { useElementSize } from '@mantine/hooks'
import { useRef, useState, type PointerEvent } from 'react'
import { axisTicks, labelStep } from './chart-ticks.ts'
import classes from './chart.module.css'

export interface Series {
  /** The key of the series in the `values` of a point. */
  readonly id: string
  readonly label: string
  readonly colour: string
}

/** The data of one bar: a number for each series. */
export interface Point {
  readonly id: string
  readonly values: Readonly<Record<string, number>>
}

interface TipContent {
  readonly title: string
  readonly parts: readonly { readonly series: Series; readonly text: string }[]
  readonly total?: string
}

export interface BarsProps {
  readonly points: readonly Point[]
  /** The series, in the order from bottom to top. */
  readonly series: readonly Series[]
  /** Height in px. */
  readonly height: number
  /** Returns the label below a bar. */
  readonly tick: (id: string) => string
  /** Returns the short label of a value at the value axis. */
  readonly scale: (value: number) => string
  /** true if values can be fractions: the axis may then have labels between whole numbers. */
  readonly divisible?: boolean
  /** Returns the tooltip of a bar, with the exact value of every part. */
  readonly tip: (point: Point) => TipContent
  /** Called when a part of a bar is clicked. For keyboard users, the table has links to the same pages. */
  readonly open?: (point: Point, series: Series) => void
  /** Called when the pointer was dragged over several bars, with the first and the last of these bars. */
  readonly zoom?: (first: Point, last: Point) => void
  /** The bar under the pointer. Charts that show their tooltips together share it. */
  readonly hover?: Hover
}

interface Hover {
  readonly id: string | null
  readonly set: (id: string | null) => void
}

/** Width for a label below a bar, in px. */
const LABEL = 58

/** Stacked bars over time. They are hidden from screen readers, because ChartSection has the same data as a table. */
export function Bars(props: BarsProps) {
  const { points, series, height, tick, scale, divisible = false, tip, open, zoom, hover } = props
  const [ownHover, setOwnHover] = useState<string | null>(null)
  const { ref, width } = useElementSize()
  const [hovered, setHovered] = hover ? [hover.id, hover.set] : [ownHover, setOwnHover]
  const brush = useBrush(points, zoom)
  const sums = points.map(({ values }) => series.reduce((sum, { id }) => sum + (values[id] ?? 0), 0))
  const ticks = axisTicks(Math.max(0, ...sums), divisible)
  const top = ticks.at(-1) ?? 1
  const step = labelStep(points.length, width, LABEL)
  const at = points.findIndex(({ id }) => id === hovered)
  const shown = points[at]
  return (
    <div className={`${classes.chart} ${open ? classes.link : ''}`} style={{ '--height': `${height}px` }} aria-hidden>
      <div className={classes.values}>
        {ticks.map(value => <span key={value} style={{ '--at': value / top }}>{scale(value)}</span>)}
      </div>
      <div className={classes.plot} ref={ref} data-plot {...brush.handlers}
        onPointerLeave={() => {
          setHovered(null)
          brush.cancel()
        }}>
        {ticks.map(value => <i key={value} className={classes.grid} style={{ '--at': value / top }} />)}
        {points.map((point, index) => (
          <div key={point.id} className={classes.bar} data-last={index === points.length - 1 || undefined}
            data-selected={brush.has(index) || undefined}
            data-hovered={index === at || undefined} onPointerEnter={() => { setHovered(point.id) }}>
            <div>
              {series.map(each => ({ each, value: point.values[each.id] ?? 0 })).filter(({ value }) => value > 0)
                .map(({ each, value }) => (
                  // Keyboard users open this page from the table.
                  // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions
                  <b key={each.id} data-part={each.id} style={{ '--share': value / top, '--colour': each.colour }}
                    onClick={() => { if (!brush.wasDragged()) open?.(point, each) }} />
                ))}
            </div>
            {index % step === 0 && <small>{tick(point.id)}</small>}
          </div>
        ))}
        {shown && <Tip content={tip(shown)} share={(at + 0.5) / points.length} />}
      </div>
    </div>
  )
}

/** Selects a range of bars by dragging. Keyboard users select a range with the time range picker or the table. */
function useBrush(points: readonly Point[], zoom: BarsProps['zoom']) {
  const from = useRef<number | null>(null)
  const dragged = useRef(false)
  const [range, setRange] = useState<readonly [number, number] | null>(null)
  const cancel = () => {
    from.current = null
    setRange(null)
  }
  const indexOf = ({ clientX, currentTarget }: PointerEvent<HTMLElement>) => {
    const { left, width } = currentTarget.getBoundingClientRect()
    return Math.min(points.length - 1, Math.max(0, Math.floor((clientX - left) / width * points.length)))
  }
  return {
    cancel,
    has: (index: number) => range !== null && index >= range[0] && index <= range[1],
    wasDragged: () => dragged.current,
    handlers: zoom && {
      onPointerDown: (event: PointerEvent<HTMLElement>) => {
        dragged.current = false
        if (event.pointerType === 'mouse' && event.button === 0) from.current = indexOf(event)
      },
      onPointerMove: (event: PointerEvent<HTMLElement>) => {
        if (from.current === null) return
        const index = indexOf(event)
        if (range === null && index === from.current) return
        dragged.current = true
        setRange([Math.min(from.current, index), Math.max(from.current, index)])
      },
      onPointerUp: () => {
        const [first, last] = range === null ? [] : [points[range[0]], points[range[1]]]
        cancel()
        if (first && last && first !== last) zoom(first, last)
      },
    },
  }
}

/** @param share - horizontal position of the bar, from 0 to 1 */
function Tip({ content: { title, parts, total }, share }: { readonly content: TipContent; readonly share: number }) {
  return (
    <div className={classes.tip} style={{ '--at': share }} data-left={share > 0.5 || undefined}>
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
