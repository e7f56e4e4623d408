import { IconChevronDown, IconChevronUp } from '@tabler/icons-react'
import { useState, type KeyboardEvent, type MouseEvent, type ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import classes from './data-table.module.css'
import { useOverflow } from './use-overflow.ts'
import { useShowMore } from './page/show-more.tsx'

export interface Column<T> {
  readonly id: string
  readonly title: string
  /** Alignment to the right, for numbers. */
  readonly align?: 'right'
  readonly cell: (row: T) => ReactNode
  /** Returns the value by which rows are sorted; absent = the column is not sortable. Numbers are compared as numbers, text as text. */
  readonly sort?: (row: T) => number | string
  readonly total?: ReactNode
  /** true if the column is hidden on a phone. */
  readonly deskOnly?: boolean
  /** For long text: `wrap` breaks it into lines, `clip` cuts it with an ellipsis. */
  readonly long?: 'wrap' | 'clip'
  /** true if the column stays visible at the right edge while the table scrolls sideways; for actions. */
  readonly pinned?: boolean
}

export interface DataTableProps<T> {
  /** Caption for screen readers. */
  readonly label: string
  readonly rows: readonly T[]
  /** The first column contains the name of the row. */
  readonly columns: readonly Column<T>[]
  readonly id: (row: T) => string
  /** Returns the URL of the page that a row opens, by click or Enter. The arrow keys move between rows. */
  readonly href?: (row: T) => string | null
  /** The `state` of the history entry for the page that a row opens. */
  readonly state?: unknown
  /** Returns an additional CSS class of a row. */
  readonly rowClass?: (row: T) => string | undefined
  /** Layout on a phone: `scroll` scrolls sideways and keeps the first column, `cards` stacks the columns. */
  readonly phone?: 'scroll' | 'cards'
  /** Label of the last row, which contains the totals. */
  readonly totalLabel?: ReactNode
  /** Number of rows that are shown at first, and that each click on the button adds. Default: all rows. */
  readonly step?: number
  /** Set if the server sorts the rows: the current order, and a function that changes it. */
  readonly sorted?: { readonly order: Order | null; readonly choose: (order: Order | null) => void }
  /** true if titles and totals stay visible while the rows scroll. */
  readonly fixed?: boolean
}

export interface Order {
  readonly column: string
  readonly descending: boolean
}

/** A table with one row for each item. */
export function DataTable<T>(props: DataTableProps<T>) {
  const { label, rows, columns, id, href, state, rowClass, totalLabel } = props
  const { phone = 'scroll', step = Infinity, sorted: byServer, fixed = false } = props
  const [ownOrder, setOwnOrder] = useState<Order | null>(null)
  const [, navigate] = useLocation()
  const [overflows, frame] = useOverflow()
  const order = byServer ? byServer.order : ownOrder
  const sorted = byServer || order === null
    ? rows
    : sortedBy(rows, columns.find(column => column.id === order.column), order.descending)
  const [shown, more] = useShowMore(sorted, step)
  const toggleSort = (column: string) => {
    const next = order?.column !== column ? { column, descending: true }
      : order.descending ? { column, descending: false } : null
    if (byServer) byServer.choose(next)
    else setOwnOrder(next)
  }
  return (
    // Keyboard users must be able to focus a scrollable region.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex, jsx-a11y/prefer-tag-over-role
    <div tabIndex={overflows ? 0 : undefined} ref={frame} className={`${classes.frame} ${fixed ? classes.fixed : ''}`} role="group"
      aria-label={label}>
      {/* The arrow keys move between the links in the table. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <table className={`${classes.table} ${classes[phone]}`} onKeyDown={moveBetweenRows}>
        <caption className="unseen">{label}</caption>
        <thead>
          <tr>
            {columns.map(column => (
              <th key={column.id} scope="col" className={classNameOf(column)}
                aria-sort={sortOf(column, order)}>
                {column.sort
                  ? <button type="button" className={classes.sort} onClick={() => { toggleSort(column.id) }}>
                      {column.title}
                      {order?.column === column.id && !order.descending
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
              // The click is only for the mouse: keyboard users open a row by the link in the first cell.
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

function classNameOf<T>({ align, long, deskOnly, pinned }: Column<T>): string | undefined {
  return [
    align === 'right' ? classes.right : '', long ? classes[long] : '', deskOnly ? classes.desk : '', pinned ? classes.pinned : '',
  ].join(' ').trim() || undefined
}

function sortOf<T>(column: Column<T>, order: Order | null) {
  if (!column.sort) return undefined
  if (order?.column !== column.id) return 'none'
  return order.descending ? 'descending' : 'ascending'
}

function sortedBy<T>(rows: readonly T[], column: Column<T> | undefined, descending: boolean): readonly T[] {
  const sort = column?.sort
  if (!sort) return rows
  const sign = descending ? -1 : 1
  return rows.toSorted((one, other) => {
    const [a, b] = [sort(one), sort(other)]
    const areNumbers = typeof a === 'number' && typeof b === 'number'
    const difference = areNumbers ? a - b : String(a).localeCompare(String(b))
    return sign * difference
  })
}

/** Opens a row, unless the click is on a control or selects text. */
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
