import { Button } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Audit } from '../../../api/keys.ts'
import { send } from '../api.ts'
import { StatusBadge, type Tone } from '../components/badges.tsx'
import { DataTable, type Column } from '../components/data-table.tsx'
import { Page, Section } from '../components/page/page.tsx'
import { Empty, LoadError, Loading } from '../components/page/states.tsx'
import { timeUtc } from '../format.ts'
import classes from './logs/logs.module.css'

type Entry = Audit['entries'][number]

/** The list of audit events: changes and logins. */
export default function AuditPage() {
  const audit = useInfiniteQuery({
    queryKey: ['GET /audit'],
    initialPageParam: null as number | null,
    queryFn: ({ pageParam, signal }) =>
      send('GET /audit', pageParam === null ? {} : { query: { before: pageParam } }, { signal }),
    getNextPageParam: ({ next }: Audit) => next,
  })
  const entries = useMemo(() => audit.data?.pages.flatMap(page => page.entries), [audit.data])
  return (
    <Page title="Audit log" about="Changes and logins, newest first.">
      <Section title="Audit events" flush>
        {entries === undefined
          ? audit.isError ? <LoadError error={audit.error} retry={() => { void audit.refetch() }} />
            : <Loading height={420} />
          : entries.length === 0
            ? <Empty title="No audit events">Every change and every login appears here.</Empty>
            : <DataTable label="Audit events, newest first" rows={entries} columns={COLUMNS}
              id={({ id }) => String(id)} phone="cards" />}
        {audit.hasNextPage && (
          <div className={classes.more}>
            <Button variant="default" size="sm" loading={audit.isFetchingNextPage}
              onClick={() => { void audit.fetchNextPage() }}>
              Load older
            </Button>
          </div>
        )}
      </Section>
    </Page>
  )
}

const ACTIONS: Readonly<Record<Entry['action'], { tone: Tone; label: string }>> = {
  'key.created': { tone: 'accent', label: 'Key created' },
  'key.changed': { tone: 'accent', label: 'Key changed' },
  'key.rotated': { tone: 'accent', label: 'Key rotated' },
  'key.revoked': { tone: 'warn', label: 'Key revoked' },
  'key.blocked': { tone: 'warn', label: 'Key blocked' },
  'key.unblocked': { tone: 'accent', label: 'Key unblocked' },
  login: { tone: 'plain', label: 'Logged in' },
  'login.refused': { tone: 'bad', label: 'Login failed' },
  logout: { tone: 'plain', label: 'Logged out' },
  'bodies.read': { tone: 'warn', label: 'Bodies viewed' },
  'config.reloaded': { tone: 'accent', label: 'Configuration reloaded' },
  'config.rejected': { tone: 'bad', label: 'Reload rejected' },
}

const COLUMNS: readonly Column<Entry>[] = [
  { id: 'at', title: 'Time (UTC)', cell: ({ at }) => <time dateTime={at}>{timeUtc(at)}</time> },
  { id: 'actor', title: 'Actor', long: 'clip', cell: ({ actor }) => <span title={actor}>{actor}</span> },
  { id: 'action', title: 'Action',
    cell: ({ action }) => <StatusBadge tone={ACTIONS[action].tone}>{ACTIONS[action].label}</StatusBadge> },
  { id: 'subject', title: 'Key', long: 'wrap',
    cell: ({ subject }) => subject ?? <span className="dim">–</span> },
  { id: 'detail', title: 'Details', long: 'wrap',
    cell: ({ detail }) => detail ?? <span className="dim">–</span> },
  { id: 'address', title: 'Address',
    cell: ({ address }) => address ?? <span className="dim">local command</span> },
]
