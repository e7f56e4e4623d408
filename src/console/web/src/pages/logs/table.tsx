import { useMemo } from 'react'
import type { Row } from '../../../../api/logs.ts'
import { DataTable, type Column, type Order } from '../../components/data-table.tsx'
import { EndBadge } from '../../components/end-badge.tsx'
import { count, counted, duration, money, moneyShort, timeExact, timeLocal, timeShort, visible } from '../../format.ts'
import { useNow } from '../../use-now.ts'
import type { Sort } from './filter.ts'
import classes from './logs.module.css'
import { identityOf } from './requests.ts'
import { tagText } from '../../tag-text.ts'

export interface RequestTableProps {
  readonly rows: readonly Row[]
  /** The keys of rows that arrived while the page was open. */
  readonly fresh: ReadonlySet<string>
  /** true if the user is a key holder, who sees no keys and no upstreams. */
  readonly forKey: boolean
  /** URL of this list. The page of a request uses it for the link back. */
  readonly list: string
  /** The order; null = the newest first. */
  readonly sort: Sort | null
  readonly choose: (sort: Sort | null) => void
}

/** The table of requests. A click on a row opens the request. */
export function RequestTable({ rows, fresh, forKey, list, sort, choose }: RequestTableProps) {
  const now = useNow(60_000)
  const hasUsers = rows.some(({ user }) => user !== null)
  const hasTags = rows.some(({ tags }) => tags !== null)
  const columns = useMemo(() => columnsAt(now, forKey, { user: hasUsers, tags: hasTags }), [now, forKey, hasUsers, hasTags])
  return (
    <div className={classes.table}>
      <DataTable label={sort === null ? 'Requests, newest first' : 'Requests'} rows={rows}
        sorted={{ order: orderOf(sort), choose: order => { choose(sortFor(order)) } }} columns={columns} id={identityOf}
        phone="cards"
        state={{ list }}
        href={({ request_id }) => `/logs/${encodeURIComponent(request_id)}`}
        rowClass={row => (fresh.has(identityOf(row)) ? classes.fresh : undefined)} />
    </div>
  )
}

/** The order for the table. The ids of the sortable columns are the names of the API. */
function orderOf(sort: Sort | null): Order {
  const text = sort ?? '-started'
  return { column: text.replace('-', ''), descending: text.startsWith('-') }
}

function sortFor(order: Order | null): Sort | null {
  if (order === null || (order.column === 'started' && order.descending)) return null
  return `${order.descending ? '-' : ''}${order.column}` as Sort
}

/** Makes a column sortable. The value is not used, because the server sorts. */
const BY_SERVER = { sort: () => '' }

/** @param shown the columns of attribution that a row has a value for */
function columnsAt(now: number, forKey: boolean, shown: { readonly user: boolean, readonly tags: boolean }): readonly Column<Row>[] {
  const columns: Column<Row>[] = [
    {
      id: 'started', title: 'Time (UTC)', ...BY_SERVER,
      cell: ({ started_at }) => (
        <time dateTime={started_at} title={`${timeExact(started_at)} UTC\n${timeLocal(started_at)}`}>
          {timeShort(started_at, now)}
        </time>
      ),
    },
    { id: 'key', title: 'Key', cell: ({ key }) => <Name text={key} width={classes.key} /> },
    { id: 'model', title: 'Model', cell: ({ model }) => <Name text={model} width={classes.model} /> },
    { id: 'user', title: 'User', cell: ({ user }) => <Name text={user} width={classes.key} /> },
    { id: 'tags', title: 'Tags', cell: ({ tags }) => <Name text={tags && tagText(tags)} width={classes.model} /> },
    {
      id: 'upstream', title: 'Upstream',
      cell: ({ upstream, attempts, unreadable }) => (
        <span className={classes.pair}>
          <Name text={upstream} width={classes.key} />
          {unreadable.length > 0 && <span className="dim">unreadable: {unreadable.join(', ')}</span>}
          {attempts > 1 && <span className="dim" title={counted(attempts, 'attempt')}>×{attempts}</span>}
        </span>
      ),
    },
    {
      id: 'status', title: 'Status', ...BY_SERVER,
      cell: ({ status, end, error }) => (
        <span className={classes.end}>
          <EndBadge end={end} status={status} />
          {error !== null && error !== end && <code className={classes.code}>{error}</code>}
        </span>
      ),
    },
    {
      id: 'output', title: 'Tokens in / out', align: 'right', ...BY_SERVER,
      cell: ({ input_tokens, output_tokens }) => (
        input_tokens === null && output_tokens === null ? <span className="dim">–</span>
        : `${count(input_tokens)} / ${count(output_tokens)}`
      ),
    },
    { id: 'cost', title: 'Cost', align: 'right', ...BY_SERVER, cell: row => <Cost row={row} /> },
    { id: 'ttft', title: 'First byte', align: 'right', ...BY_SERVER,
      cell: ({ first_byte_ms }) => duration(first_byte_ms) },
    { id: 'duration', title: 'Duration', align: 'right', ...BY_SERVER, cell: ({ duration_ms }) => duration(duration_ms) },
  ]
  return columns.filter(({ id }) => (id === 'user' || id === 'tags' ? shown[id] : !forKey || (id !== 'key' && id !== 'upstream')))
}

function Name({ text, width }: { readonly text: string | null; readonly width: string | undefined }) {
  if (text === null) return <span className="dim">none</span>
  return <span className={`${classes.clip} ${width}`} title={text}>{visible(text)}</span>
}

function Cost({ row: { cost_usd, source } }: { readonly row: Row }) {
  if (cost_usd === null) return <span className="dim">unknown</span>
  const isEstimate = source === 'estimated' || source === 'mixed'
  return (
    <span title={`${money(cost_usd)}${isEstimate ? ', estimated' : ''}`}>
      {isEstimate && <><span aria-hidden>≈ </span><span className="unseen">estimated </span></>}
      {moneyShort(cost_usd)}
    </span>
  )
}
