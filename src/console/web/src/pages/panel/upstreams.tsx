import { Link } from 'wouter'
import type { ResponseOf } from '../../api.ts'
import { StatusBadge, type Tone } from '../../components/badges.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Share } from '../../components/charts/meter.tsx'
import { Section } from '../../components/page/page.tsx'
import { Empty } from '../../components/page/states.tsx'
import { approximate, costText, count, duration, moneyShort, percent } from '../../format.ts'
import classes from './upstreams.module.css'

type Upstream = ResponseOf<'GET /upstreams'>['upstreams'][number]

/** Maximum number of circuits to list. Further circuits are counted. */
const MAX_CIRCUITS = 3

export const HEALTH: Readonly<Record<Upstream['health'], { tone: Tone; text: string }>> = {
  well: { tone: 'good', text: 'Healthy' },
  failing: { tone: 'warn', text: 'Degraded' },
  down: { tone: 'bad', text: 'Unhealthy' },
  unknown: { tone: 'plain', text: 'No requests since start' },
}

const columnsFor = (href: UpstreamsProps['href']): readonly Column<Upstream>[] => [
  {
    id: 'name', title: 'Upstream', long: 'clip', sort: row => row.name,
    cell: row =>
      <span title={row.name}>{row.name}<small className={classes.where} title={row.url ?? undefined}>{row.url ?? 'built-in simulator'}</small></span>,
  },
  {
    id: 'health', title: 'Health and circuits', sort: row => row.health,
    cell: row => (
      <div className={classes.health}>
        <StatusBadge tone={HEALTH[row.health].tone}>{HEALTH[row.health].text}</StatusBadge>
        <Circuits upstream={row} href={href(row.name)} />
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
  {
    id: 'errors', title: 'Errors', align: 'right', sort: errorShare,
    cell: row => (row.figures.requests === 0 ? '–' : percent(errorShare(row))),
  },
  {
    id: 'p50', title: 'p50', align: 'right', deskOnly: true,
    sort: row => row.first_byte.p50_ms ?? -1, cell: row => duration(row.first_byte.p50_ms),
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
    cell: row => costText(row.figures, moneyShort),
  },
]

export interface UpstreamsProps {
  readonly upstreams: readonly Upstream[]
  /** Returns the link to the page of an upstream. */
  readonly href: (name: string) => string
}

/** The upstreams, each with its current health and its figures of the selected time range. */
export function Upstreams({ upstreams, href }: UpstreamsProps) {
  const columns = columnsFor(href)
  return (
    <Section title="Upstreams"
      about="Current health. Other columns: selected time range; p50 and p95 are the time to the first byte"
      flush>
      {upstreams.length === 0
        ? <Empty title="No upstreams">Add upstreams in gateway.yaml.</Empty>
        : <DataTable label="Upstreams" rows={upstreams} columns={columns} id={row => row.name}
            href={row => href(row.name)} phone="cards" />}
    </Section>
  )
}

interface CircuitsProps {
  readonly upstream: Upstream
  /** Link to the page of the upstream, which lists all circuits. */
  readonly href: string
}

function Circuits({ upstream, href }: CircuitsProps) {
  const notClosed = upstream.candidates.filter(({ circuit }) => circuit !== 'closed')
  const total = upstream.candidates.length
  if (total === 0) return null
  if (notClosed.length === 0) {
    return <small>{total === 1 ? 'circuit closed' : `${total} circuits closed`}</small>
  }
  return (
    <>
      {notClosed.slice(0, MAX_CIRCUITS).map(({ model, circuit, opens_in_ms }) => (
        <small key={model}>
          <b>Circuit {circuit === 'open' ? 'open' : 'half-open'}</b>: {model ?? 'all models'}
          {circuit === 'open' && `, retry ${nextRetry(opens_in_ms)}`}
        </small>
      ))}
      {notClosed.length > MAX_CIRCUITS && <small><Link href={href}>{count(notClosed.length - MAX_CIRCUITS)} more not closed</Link></small>}
      {total > notClosed.length && <small>{total - notClosed.length} of {total} circuits closed</small>}
    </>
  )
}

/** When an open circuit allows a request. @param ms - null = a health check decides */
function nextRetry(ms: number | null): string {
  if (ms === null) return 'after a successful health check'
  return ms > 0 ? `in ${duration(ms)}` : 'on next request'
}

function errorShare({ figures }: Upstream): number {
  return figures.requests === 0 ? 0 : figures.errors / figures.requests
}
