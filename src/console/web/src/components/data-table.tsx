import { IconChevronDown, IconChevronUp } from '@tabler/icons-react'
import { useState } from 'react'
import type { KeyboardEvent, MouseEvent, ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import classes from './data-table.module.css'
import { useScrolls } from './use-scrolls.ts'
import { useShowMore } from './use-some.tsx'

export interface Column<T> {
  readonly id: string
  readonly title: string
  /** Numbers stand right. */
  readonly align?: 'right'
  readonly cell: (row: T) => ReactNode
  /** Makes the column one to sort by. Compares numbers as numbers and text as text. */
  readonly sort?: (row: T) => number | string
  readonly total?: ReactNode
  /** Left out on a phone. */
  readonly deskOnly?: boolean
  /** Long text: `wrap` goes to several lines, `clip` ends in an ellipsis. */
  readonly long?: 'wrap' | 'clip'
}

export interface DataTableProps<T> {
  /** What is in the table, for those who cannot see where it stands. */
  readonly label: string
  readonly rows: readonly T[]
  /** The first one is what names the row. */
  readonly columns: readonly Column<T>[]
  readonly id: (row: T) => string
  /** The page that a row opens, by click, Enter on its name, and the arrow keys to go from row to row. */
  readonly href?: (row: T) => string | null
  /**
   * What the page that a row opens is told of this one: the `state` of its entry in the browser's history.
   */
  readonly state?: unknown
  /** Makes some rows look different from the others. */
  readonly rowClass?: (row: T) => string | undefined
  /** On a phone: `scroll` keeps the columns with the name in place, `cards` sets them below each other. */
  readonly phone?: 'scroll' | 'cards'
  /** What the last row, with the totals, is called. */
  readonly totalLabel?: ReactNode
  /** As many rows are shown at first, and as many more at each click; all, unless told. */
  readonly step?: number
}

interface Order {
  readonly column: string
  readonly down: boolean
}

/** Rows of data. */
export function DataTable<T>(props: DataTableProps<T>) {
  const { label, rows, columns, id, href, state, rowClass, totalLabel } = props
  const { phone = 'scroll', step = Infinity } = props
  const [order, setOrder] = useState<Order | null>(null)
  const [, navigate] = useLocation()
  const [scrolls, frame] = useScrolls()
  const sorted = order === null
    ? rows
    : sortedBy(rows, columns.find(column => column.id === order.column), order.down)
  const [shown, more] = useShowMore(sorted, step)
  const turn = (column: string) => {
    setOrder(before => {
      if (before?.column !== column) return { column, down: true }
      return before.down ? { column, down: false } : null
    })
  }
  return (
    // What scrolls has to be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex, jsx-a11y/prefer-tag-over-role
    <div tabIndex={scrolls ? 0 : undefined} ref={frame} className={classes.frame} role="group"
      aria-label={label}>
      {/* The arrow keys go between the links in it. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <table className={`${classes.table} ${classes[phone]}`} onKeyDown={moveBetweenRows}>
        <caption className="unseen">{label}</caption>
        <thead>
          <tr>
            {columns.map(column => (
              <th key={column.id} scope="col" className={classNameOf(column)}
                aria-sort={sortOf(column, order)}>
                {column.sort
                  ? <button type="button" className={classes.sort} onClick={() => { turn(column.id) }}>
                      {column.title}
                      {order?.column === column.id && !order.down
                        ? <IconChevronUp size={13} aria-hidden /> : <IconChevronDown size={13} aria-hidden />}
                    </button>
                  : column.title === '' ? <span className="unseen">Actions</span> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(row => {
            const target = href?.(row) ?? null
            const open = (event: MouseEvent) => {
              if (target !== null) openRow(event, () => { navigate(target, { state }) })
            }
            return (
              // The link in the first cell is the row's control; a click beside it is a convenience.
              // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions
              <tr key={id(row)} onClick={open}
                className={`${target === null ? '' : classes.open} ${rowClass?.(row) ?? ''}`.trim()
                  || undefined}>
                {columns.map((column, index) => cellOf(column, row, index === 0, target, state))}
              </tr>
            )
          })}
        </tbody>
        {totalLabel !== undefined && (
          <tfoot>
            <tr>
              {columns.map((column, index) => index === 0
                ? <th key={column.id} scope="row">{totalLabel}</th>
                : <td key={column.id} className={classNameOf(column)}
                  data-label={column.title}>{column.total}</td>)}
            </tr>
          </tfoot>
        )}
      </table>
      {more}
    </div>
  )
}

function cellOf<T>(column: Column<T>, row: T, isFirst: boolean, target: string | null, state: unknown) {
  const content = column.cell(row)
  const className = `${classNameOf(column) ?? ''} ${content === null ? classes.blank : ''}`.trim()
    || undefined
  if (!isFirst) return <td key={column.id} className={className} data-label={column.title}>{content}</td>
  return (
    <th key={column.id} scope="row" className={className}>
      {target === null
        ? content
        : <Link href={target} state={state} className={classes.link} data-row>{content}</Link>}
    </th>
  )
}

function classNameOf<T>({ align, long, deskOnly }: Column<T>): string | undefined {
  return [
    align === 'right' ? classes.right : '', long ? classes[long] : '', deskOnly ? classes.desk : '',
  ].join(' ').trim() || undefined
}

function sortOf<T>(column: Column<T>, order: Order | null) {
  if (!column.sort) return undefined
  if (order?.column !== column.id) return 'none'
  return order.down ? 'descending' : 'ascending'
}

function sortedBy<T>(rows: readonly T[], column: Column<T> | undefined, down: boolean): readonly T[] {
  const sort = column?.sort
  if (!sort) return rows
  const sign = down ? -1 : 1
  return rows.toSorted((one, other) => {
    const [a, b] = [sort(one), sort(other)]
    const areNumbers = typeof a === 'number' && typeof b === 'number'
    const difference = areNumbers ? a - b : String(a).localeCompare(String(b))
    return sign * difference
  })
}

/** A click on what is itself a control, or with which text is selected, is not meant for the row. */
function openRow(event: MouseEvent, open: () => void): void {
  const isControl = event.target instanceof Element
    && event.target.closest('a, button, input, label, [role="menu"]')
  if (event.defaultPrevented || isControl || window.getSelection()?.isCollapsed === false) return
  open()
}

const STEPS: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowDown: (at, last) => Math.min(at + 1, last),
  ArrowUp: at => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
}

function moveBetweenRows(event: KeyboardEvent<HTMLTableElement>): void {
  const step = STEPS[event.key]
  if (!step || !(event.target instanceof HTMLElement) || !event.target.matches('a[data-row]')) return
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('a[data-row]')]
  event.preventDefault()
  links[step(links.indexOf(event.target), links.length - 1)]?.focus()
}
