import type { ResponseOf } from '../../api.ts'
import { StatusBadge } from '../../components/badges.tsx'
import type { Tone } from '../../components/badges.tsx'
import { DataTable } from '../../components/data-table.tsx'
import type { Column } from '../../components/data-table.tsx'
import { Share } from '../../components/meter.tsx'
import { Section } from '../../components/page.tsx'
import { Empty } from '../../components/states.tsx'
import { approximate, count, duration, moneyShort, percent } from '../../format.ts'
import classes from './upstreams.module.css'

type Upstream = ResponseOf<'GET /upstreams'>['upstreams'][number]

const HEALTH: Readonly<Record<Upstream['health'], { tone: Tone; text: string }>> = {
  well: { tone: 'good', text: 'Well' },
  failing: { tone: 'warn', text: 'Failing' },
  down: { tone: 'bad', text: 'Down' },
  unknown: { tone: 'plain', text: 'Not asked since the start' },
}

const COLUMNS: readonly Column<Upstream>[] = [
  {
    id: 'name', title: 'Upstream', long: 'clip', sort: row => row.name,
    cell: row =>
      <>{row.name}<small className={classes.where}>{row.url ?? 'simulator, in the process'}</small></>,
  },
  {
    id: 'health', title: 'Health and circuits', sort: row => row.health,
    cell: row => (
      <div className={classes.health}>
        <StatusBadge tone={HEALTH[row.health].tone}>{HEALTH[row.health].text}</StatusBadge>
        <Circuits upstream={row} />
      </div>
    ),
  },
  {
    id: 'share', title: 'Share', sort: row => row.share, cell: row => <Share of={row.share} />,
  },
  {
    id: 'requests', title: 'Requests', align: 'right', sort: row => row.figures.requests,
    cell: row => count(row.figures.requests),
  },
  { id: 'errors', title: 'Errors', align: 'right', sort: errorShare, cell: row => percent(errorShare(row)) },
  {
    id: 'p50', title: 'Median', align: 'right', deskOnly: true, sort: row => row.first_byte.p50_ms ?? -1,
    cell: row => duration(row.first_byte.p50_ms),
  },
  {
    id: 'p95', title: 'p95', align: 'right', sort: row => row.first_byte.p95_ms ?? -1,
    cell: row => duration(row.first_byte.p95_ms),
  },
  {
    id: 'running', title: 'Running', align: 'right', deskOnly: true, sort: row => row.in_flight,
    cell: row => count(row.in_flight),
  },
  {
    id: 'spend', title: 'Spend', align: 'right', sort: row => approximate(row.figures.cost_usd),
    cell: row => moneyShort(row.figures.cost_usd),
  },
]

export interface UpstreamsProps {
  readonly upstreams: readonly Upstream[]
  /** Where the requests of an upstream are listed. */
  readonly href: (name: string) => string
}

/** Each upstream: how it is, and what it did in the chosen time. */
export function Upstreams({ upstreams, href }: UpstreamsProps) {
  return (
    <Section title="Upstreams"
      about="Health is of now; the figures are of the chosen time, latency to the first byte"
      flush>
      {upstreams.length === 0
        ? <Empty title="No upstreams">Nothing is configured that a request could go to.</Empty>
        : <DataTable label="Upstreams" rows={upstreams} columns={COLUMNS} id={row => row.name}
            href={row => href(row.name)} phone="cards" />}
    </Section>
  )
}

function Circuits({ upstream }: { readonly upstream: Upstream }) {
  const troubled = upstream.candidates.filter(({ circuit }) => circuit !== 'closed')
  const total = upstream.candidates.length
  if (total === 0) return null
  if (troubled.length === 0) {
    return <small>{total === 1 ? 'circuit closed' : `${total} circuits closed`}</small>
  }
  return (
    <>
      {troubled.slice(0, 3).map(({ model, circuit, opens_in_ms }) => (
        <small key={model}>
          <b>
            {circuit}
          </b> for {model ?? 'any model'}{opens_in_ms !== null && `, tried ${whenTried(opens_in_ms)}`}
        </small>
      ))}
      {total > troubled.length && <small>{total - troubled.length} of {total} circuits closed</small>}
    </>
  )
}

/** A circuit whose time is over waits for the next request. */
function whenTried(ms: number): string {
  return ms > 0 ? `in ${duration(ms)}` : 'with the next request'
}

function errorShare({ figures }: Upstream): number {
  return figures.requests === 0 ? 0 : figures.errors / figures.requests
}
