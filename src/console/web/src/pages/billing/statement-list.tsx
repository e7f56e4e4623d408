import { TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useState } from 'react'
import { Link } from 'wouter'
import type { ResponseOf } from '../../api.ts'
import { useApiQuery } from '../../api-hooks.ts'
import { NameLabel } from '../../components/badges.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Section } from '../../components/page/page.tsx'
import { Empty, QueryView } from '../../components/page/states.tsx'
import { approximate, costText, monthName, moneyShort } from '../../format.ts'
import { useUser } from '../../session.ts'
import { monthBefore, monthBounds } from './months.ts'
import { labelOf } from './names.ts'

type Group = ResponseOf<'GET /billing'>['groups'][number]
type Kind = 'key' | 'owner' | 'user' | `tag:${string}`

/** Number of rows that are shown at first. */
const STEP = 100

/** The most users that are listed: there can be very many. */
const MOST = 1000

/** All keys, owners, values of tags, and users that have usage in the month, or in the month before it. */
export function StatementList({ month }: { readonly month: string }) {
  const { tags, has_users } = useUser()
  const kinds: Kind[] = ['key', 'owner', ...tags.map(name => `tag:${name}` as const), ...has_users ? ['user' as const] : []]
  return <>{kinds.map(kind => <List key={kind} kind={kind} month={month} />)}</>
}

const TITLES: Readonly<Record<string, string>> = { key: 'Keys', owner: 'Owners', user: 'Users' }

/** The parameters of the statement of this name. */
function subjectOf(kind: Kind, name: string): Record<string, string> {
  return kind.startsWith('tag:') ? { tag: `${kind.slice('tag:'.length)}=${name}` } : { [kind]: name }
}

interface Row {
  readonly name: string
  readonly now: Group | undefined
  readonly before: Group | undefined
}

function List({ kind, month }: { readonly kind: Kind; readonly month: string }) {
  const [text, setText] = useState('')
  const before = monthBefore(month)
  const now = useApiQuery('GET /billing', { query: { ...monthBounds(month), by: kind, limit: MOST } })
  const past = useApiQuery('GET /billing', { query: { ...monthBounds(before), by: kind, limit: MOST } })
  const title = TITLES[kind] ?? labelOf(kind)
  const rows = rowsOf(now.data?.groups ?? [], past.data?.groups ?? [])
    .filter(({ name }) => name.toLowerCase().includes(text.trim().toLowerCase()))
  const amount = (of: string, group: (row: Row) => Group | undefined): Column<Row> => ({
    id: of, title: monthName(of), align: 'right',
    sort: row => approximate(group(row)?.figures.cost_usd ?? null),
    cell: row => {
      const figures = group(row)?.figures
      if (!figures) return <span className="dim">no requests</span>
      const href = `/statement?${new URLSearchParams({ ...subjectOf(kind, row.name), month: of })}`
      return (
        <Link href={href}>
          {costText(figures, moneyShort)}<span className="unseen">, statement of {row.name}, {monthName(of)}</span>
        </Link>
      )
    },
  })
  return (
    <Section title={title} flush actions={
      <TextInput size="sm" aria-label={`Filter ${title.toLowerCase()}`} placeholder="Filter by name" value={text}
        leftSection={<IconSearch size={16} stroke={1.6} aria-hidden />}
        onChange={event => { setText(event.currentTarget.value) }} />
    }>
      <QueryView of={past.data ? now : past} height={200}>
        {() => (rows.length === 0
          ? <Empty title={`No ${title.toLowerCase()} with usage in these two months`} />
          : <DataTable label={`Statements of ${title.toLowerCase()}`} rows={rows} id={({ name }) => name} step={STEP}
              columns={[
                {
                  id: 'name', title: labelOf(kind), long: 'clip', sort: ({ name }) => name,
                  cell: ({ name }) => <NameLabel kind={kind.startsWith('tag:') ? 'tag' : kind as 'key'} name={name} />,
                },
                amount(before, row => row.before),
                amount(month, row => row.now),
              ]} />)}
      </QueryView>
    </Section>
  )
}

/** The rows by name. Requests without a name are left out. */
function rowsOf(now: readonly Group[], before: readonly Group[]): Row[] {
  const [current, past] = [byName(now), byName(before)]
  return [...new Set([...current.keys(), ...past.keys()])].sort()
    .map(name => ({ name, now: current.get(name), before: past.get(name) }))
}

function byName(groups: readonly Group[]): Map<string, Group> {
  return new Map(groups.flatMap(group => (group.name === null ? [] : [[group.name, group]])))
}
