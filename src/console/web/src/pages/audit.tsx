import { Button } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Audit } from '../../../api/keys.ts'
import { send } from '../api.ts'
import { StatusBadge } from '../components/badges.tsx'
import type { Tone } from '../components/badges.tsx'
import { DataTable } from '../components/data-table.tsx'
import type { Column } from '../components/data-table.tsx'
import { Page, Section } from '../components/page.tsx'
import { Empty, Failure, Loading } from '../components/states.tsx'
import { timeUtc } from '../format.ts'
import classes from './logs/logs.module.css'

type Entry = Audit['entries'][number]

/** Who changed what, and who logged in. */
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
    <Page title="Audit" about="Who changed what, and who logged in or tried to. The newest stands first.">
      <Section title="Changes and logins" flush>
        {entries === undefined
          ? audit.isError ? <Failure error={audit.error} retry={() => { void audit.refetch() }} />
            : <Loading height={420} />
          : entries.length === 0
            ? <Empty title="Nothing has been changed yet">Each change and each login appears here.</Empty>
            : <DataTable label="Audit, the newest first" rows={entries} columns={COLUMNS}
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

const ACTIONS: Readonly<Record<Entry['action'], { tone: Tone; word: string }>> = {
  'key.created': { tone: 'accent', word: 'Key created' },
  'key.changed': { tone: 'accent', word: 'Key changed' },
  'key.revoked': { tone: 'warn', word: 'Key revoked' },
  'key.blocked': { tone: 'warn', word: 'Key blocked' },
  'key.unblocked': { tone: 'accent', word: 'Key unblocked' },
  login: { tone: 'plain', word: 'Logged in' },
  'login.refused': { tone: 'bad', word: 'Login refused' },
  logout: { tone: 'plain', word: 'Logged out' },
  'bodies.read': { tone: 'warn', word: 'Bodies read' },
}

const COLUMNS: readonly Column<Entry>[] = [
  { id: 'at', title: 'Time, UTC', cell: ({ at }) => <time dateTime={at}>{timeUtc(at)}</time> },
  { id: 'actor', title: 'Who', long: 'clip', cell: ({ actor }) => <span title={actor}>{actor}</span> },
  { id: 'action', title: 'What',
    cell: ({ action }) => <StatusBadge tone={ACTIONS[action].tone}>{ACTIONS[action].word}</StatusBadge> },
  { id: 'subject', title: 'Key', long: 'wrap',
    cell: ({ subject }) => subject ?? <span className="dim">–</span> },
  { id: 'detail', title: 'Detail', long: 'wrap',
    cell: ({ detail }) => detail ?? <span className="dim">–</span> },
  { id: 'address', title: 'From',
    cell: ({ address }) => address ?? <span className="dim">this machine</span> },
]
