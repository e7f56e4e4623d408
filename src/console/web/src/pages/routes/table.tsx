import { useMemo } from 'react'
import type { RouteRow } from '../../../../api/routes.ts'
import { StatusBadge, NameLabel } from '../../components/badges.tsx'
import type { Tone } from '../../components/badges.tsx'
import { DataTable } from '../../components/data-table.tsx'
import type { Column } from '../../components/data-table.tsx'
import { duration } from '../../format.ts'
import classes from './routes.module.css'

export interface RouteTableProps {
  readonly file: string
  readonly routes: readonly RouteRow[]
  /** The index of the route that the explained request takes. */
  readonly matched?: number
}

/** Routes in their order. */
export function RouteTable({ file, routes, matched: taken }: RouteTableProps) {
  const columns = useMemo(() => columnsFor(file, taken), [file, taken])
  return (
    <DataTable label="Routes, in their order" rows={routes} columns={columns}
      id={({ index }) => String(index)} phone="cards"
      rowClass={({ index }) => (index === taken ? classes.taken : undefined)} />
  )
}

/** What can be searched in a route, in lower case. */
export function routeText({ path, models, targets }: RouteRow): string {
  return [path ?? '', ...models ?? [],
    ...targets.flatMap(({ upstream, model }) => [upstream, model ?? ''])].join('\n').toLowerCase()
}

function columnsFor(file: string, taken: number | undefined): readonly Column<RouteRow>[] {
  return [
    {
      id: 'index', title: 'Route',
      cell: ({ index, line }) => (
        <span className={classes.place}>
          <span>routes[{index}]</span>
          <small className="dim" title={`${file}:${line}`}>line {line}</small>
          {index === taken && <StatusBadge tone="accent">takes it</StatusBadge>}
        </span>
      ),
    },
    {
      id: 'path', title: 'Path', long: 'wrap',
      cell: ({ path }) => (path === null ? <span className="dim">any</span> : <code>{path}</code>),
    },
    {
      id: 'models', title: 'Models', long: 'wrap',
      cell: ({ models }) => (models === null ? <span className="dim">any, or none</span>
        : <span className={classes.globs}>{[...new Set(models)].map(glob =>
          <code key={glob}>{glob}</code>)}</span>),
    },
    { id: 'targets', title: 'Goes to', long: 'wrap', cell: ({ targets }) => <Targets targets={targets} /> },
    { id: 'manner', title: 'How', long: 'wrap', cell: route => <Manner route={route} /> },
  ]
}

const CIRCUITS: Readonly<Record<'closed' | 'open' | 'probing', { tone: Tone; word: string }>> = {
  closed: { tone: 'good', word: 'Well' },
  open: { tone: 'bad', word: 'Circuit open' },
  probing: { tone: 'warn', word: 'Being tried' },
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
          {circuit !== 'unknown' && <StatusBadge tone={CIRCUITS[circuit].tone}>{CIRCUITS[circuit].word}</StatusBadge>}
        </li>
      ))}
    </ol>
  )
}

const ORDER: Readonly<Record<RouteRow['strategy'], string>> = {
  ordered: 'In order',
  weighted: 'At random, by weight',
  least_busy: 'The least busy first',
  fastest: 'The faster of two at random first',
}

/** How a target is chosen, and what follows when it fails. */
function Manner({ route }: { readonly route: RouteRow }) {
  const { targets, strategy, affinity, retries, resume, on_context_length, on_content_filter, timeouts } =
    route
  const lines = [
    ...targets.length > 1 ? [affinity === null ? ORDER[strategy] : `The same target for each ${affinity}`]
      : [],
    ...retries > 0 ? [retries === 1 ? '1 retry' : `${retries} retries`] : [],
    ...resume === 'continue' ? ['A cut stream is continued'] : resume === 'hold'
      ? ['Held back until it is complete'] : [],
    ...on_context_length === null ? [] : [`Too long: ${on_context_length}`],
    ...on_content_filter === null ? [] : [`Filtered: ${on_content_filter}`],
  ]
  const { connect_ms, first_byte_ms, idle_ms, total_ms } = timeouts
  const all = [
    `connect ${duration(connect_ms)}`, `first byte ${duration(first_byte_ms)}`, `idle ${duration(idle_ms)}`,
    `in all ${duration(total_ms)}`,
  ]
  return (
    <ul className={classes.manner}>
      {lines.map(line => <li key={line}>{line}</li>)}
      <li className="dim">
        <abbr title={all.join(', ')}>
          First byte in {duration(first_byte_ms)}, all in {duration(total_ms)}
        </abbr>
      </li>
    </ul>
  )
}
