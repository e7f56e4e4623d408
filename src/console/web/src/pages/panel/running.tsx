import type { ResponseOf } from '../../api.ts'
import { StatusBadge, NameLabel } from '../../components/badges.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Section } from '../../components/page/page.tsx'
import { Empty } from '../../components/page/states.tsx'
import { bytes, count, counted, duration } from '../../format.ts'
import { useUser } from '../../session.ts'
import classes from './running.module.css'
import { useAnnouncement } from './use-announcement.ts'

type Live = ResponseOf<'GET /live'>
type Exchange = Live['exchanges'][number]

const SHOWN = 8
const LIMITS = { requests: 'requests/min', tokens: 'tokens/min', concurrent: 'concurrency' } as const

/** The running requests. @param isLive - true if the last refresh succeeded */
export function RunningRequests({ live, isLive }: { readonly live: Live; readonly isLive: boolean }) {
  const { role } = useUser()
  const about = `${counted(live.running, 'request')}, ${count(live.running_streams)} streaming`
  const announcement = useAnnouncement(about, 15_000)
  const shown = live.exchanges.slice(0, SHOWN)
  return (
    <Section title="Running now" flush about={about}
      actions={isLive && <span className={classes.live}><i aria-hidden />Live</span>}>
      <p className="unseen" aria-live="polite">{announcement}</p>
      {shown.length === 0
        ? <Empty title="No running requests">Requests appear here while they run.</Empty>
        : <DataTable label="Running requests" rows={shown} phone="cards"
            columns={columnsOf(Date.parse(live.at), role !== 'key')} id={row => row.request_id}
            href={row => `/logs/${encodeURIComponent(row.request_id)}`} />}
      {live.running > shown.length && (
        <p className={classes.more}>and {count(live.running - shown.length)} more</p>
      )}
    </Section>
  )
}

function columnsOf(now: number, withUpstream: boolean): Column<Exchange>[] {
  return [
    { id: 'id', title: 'Request', cell: row => <span className="mono">{row.request_id.slice(0, 18)}</span> },
    {
      id: 'duration', title: 'Duration', align: 'right',
      cell: row => duration(Math.max(0, Math.floor((now - Date.parse(row.started_at)) / 100) * 100)),
    },
    { id: 'key', title: 'Key', long: 'clip', cell: row => <NameLabel kind="key" name={row.key} /> },
    { id: 'model', title: 'Model', long: 'clip', cell: row => <NameLabel kind="model" name={row.model} /> },
    ...withUpstream
      ? [{
          id: 'upstream', title: 'Upstream', long: 'clip' as const, deskOnly: true,
          cell: (row: Exchange) => <NameLabel kind="upstream" name={row.upstream} />,
        }]
      : [],
    {
      id: 'waits', title: 'Queue', cell: row => row.waits_for === null ? null
        : <StatusBadge tone="warn">{`waits: ${LIMITS[row.waits_for.limit]} of the ${row.waits_for.scope}, priority ${row.waits_for.priority}`}</StatusBadge>,
    },
    { id: 'sent', title: 'Sent', align: 'right', deskOnly: true, cell: row => bytes(row.bytes_out) },
    {
      id: 'type', title: 'Type', deskOnly: true,
      cell: row => row.stream ? <StatusBadge tone="accent">stream</StatusBadge>
        : <StatusBadge tone="plain">no stream</StatusBadge>,
    },
  ]
}
