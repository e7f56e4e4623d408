import { useMemo } from 'react'
import { Link } from 'wouter'
import type { RouteRow } from '../../../../api/routes.ts'
import { StatusBadge, NameLabel, type Tone } from '../../components/badges.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { useShowMore } from '../../components/page/show-more.tsx'
import { duration } from '../../format.ts'
import { filterFor, lineHref, logsHref } from '../../links.ts'
import { presetRange } from '../../range.ts'
import classes from './routes.module.css'

export interface RouteTableProps {
  readonly file: string
  readonly routes: readonly RouteRow[]
  /** Index of the route that the explained request matches. */
  readonly matched?: number
}

/** The routes in the order of the configuration. */
export function RouteTable({ file, routes, matched }: RouteTableProps) {
  const columns = useMemo(() => columnsFor(file, matched), [file, matched])
  return (
    <DataTable label="Routes in order" rows={routes} columns={columns}
      id={({ index }) => String(index)} phone="cards"
      rowClass={({ index }) => (index === matched ? classes.matched : undefined)} />
  )
}

/** The text of a route in which the search looks, in lower case. */
export function routeText({ path, models, targets }: RouteRow): string {
  return [path ?? '', ...models ?? [],
    ...targets.flatMap(({ upstream, model }) => [upstream, model ?? ''])].join('\n').toLowerCase()
}

function columnsFor(file: string, matched: number | undefined): readonly Column<RouteRow>[] {
  return [
    {
      id: 'index', title: 'Route',
      cell: ({ index, line }) => (
        <span className={classes.place}>
          <span>routes[{index}]</span>
          <Link href={lineHref(line)} title={`${file}:${line}`} className={classes.line}>line {line}</Link>
          {index === matched && <StatusBadge tone="accent">matches</StatusBadge>}
        </span>
      ),
    },
    {
      id: 'path', title: 'Path', long: 'wrap',
      cell: ({ path }) => (path === null ? <span className="dim">any</span> : <code>{path}</code>),
    },
    {
      id: 'models', title: 'Models', long: 'wrap',
      cell: ({ models, served }) => (
        <>
          {models === null ? <span className="dim">any or none</span>
            : <span className={classes.globs}>{[...new Set(models)].map(glob => <code key={glob}>{glob}</code>)}</span>}
          <ServedModels served={served} />
        </>
      ),
    },
    { id: 'targets', title: 'Targets', long: 'wrap', cell: ({ targets }) => <Targets targets={targets} /> },
    { id: 'policy', title: 'Policy', long: 'wrap', cell: route => <Policy route={route} /> },
  ]
}

/** The models that match a glob of the route. */
function ServedModels({ served }: { readonly served: readonly string[] }) {
  const [shown, more] = useShowMore(served, 6, 'inline')
  if (served.length === 0) return null
  return (
    <div className={classes.served}>
      <span className="dim">serves</span>
      {shown.map(name => <Link key={name} href={logsHref(presetRange('30d'), filterFor('model', name))}>{name}</Link>)}
      {more}
    </div>
  )
}

const CIRCUITS: Readonly<Record<'closed' | 'open' | 'probing', { tone: Tone; label: string }>> = {
  closed: { tone: 'good', label: 'Healthy' },
  open: { tone: 'bad', label: 'Circuit open' },
  probing: { tone: 'warn', label: 'Circuit half-open' },
}

function Targets({ targets }: { readonly targets: RouteRow['targets'] }) {
  const isWeighted = targets.some(({ weight }) => weight !== 1)
  return (
    <ol className={targets.length > 1 ? classes.targets : classes.target}>
      {targets.map(({ upstream, model, weight, prefill, circuit }) => (
        <li key={`${upstream} ${model} ${weight} ${prefill}`}>
          <NameLabel kind="upstream" name={upstream} />
          {model !== null && <code>{model}</code>}
          {isWeighted && <span className="dim">weight {weight}</span>}
          {prefill && <span className="dim">prefill</span>}
          {circuit !== 'unknown'
            && <StatusBadge tone={CIRCUITS[circuit].tone}>{CIRCUITS[circuit].label}</StatusBadge>}
        </li>
      ))}
    </ol>
  )
}

const STRATEGIES: Readonly<Record<RouteRow['strategy'], string>> = {
  ordered: 'In order',
  weighted: 'Weighted random',
  least_busy: 'Least busy first',
  fastest: 'Faster of two random targets first',
}

const RESUME: Readonly<Record<RouteRow['resume'], readonly string[]>> = {
  off: [],
  continue: ['Continues interrupted streams'],
  hold: ['Holds the response until it is complete'],
  continue_or_hold: ['Continues interrupted streams, or holds the response until it is complete'],
}

/** How a target is chosen, and what happens when a target fails. */
function Policy({ route }: { readonly route: RouteRow }) {
  const { targets, strategy, affinity, retries, resume, hedge_after_ms, on_context_length, on_content_filter, timeouts } =
    route
  const lines = [
    ...targets.length > 1 ? [affinity === null ? STRATEGIES[strategy] : `Same target for each ${affinity}`]
      : [],
    ...retries > 0 ? [retries === 1 ? '1 retry' : `${retries} retries`] : [],
    ...hedge_after_ms === null ? [] : [`Second target after ${duration(hedge_after_ms)} without content`],
    ...RESUME[resume],
    ...on_context_length === null ? [] : [`Context too long: ${on_context_length}`],
    ...on_content_filter === null ? [] : [`Content filtered: ${on_content_filter}`],
  ]
  const { connect_ms, first_byte_ms, idle_ms, total_ms } = timeouts
  const all = [
    `connect ${duration(connect_ms)}`, `first byte ${duration(first_byte_ms)}`, `idle ${duration(idle_ms)}`,
    `total ${duration(total_ms)}`,
  ]
  return (
    <ul className={classes.policy}>
      {lines.map(line => <li key={line}>{line}</li>)}
      <li className="dim">
        <abbr title={all.join(', ')}>
          Timeouts: first byte {duration(first_byte_ms)}, total {duration(total_ms)}
        </abbr>
      </li>
    </ul>
  )
}
