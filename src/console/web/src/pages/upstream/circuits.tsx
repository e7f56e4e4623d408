import { Link } from 'wouter'
import type { UpstreamDetails } from '../../../../api/upstream.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Section } from '../../components/page/page.tsx'
import { Empty } from '../../components/page/states.tsx'
import { Time } from '../../components/time.tsx'
import { count } from '../../format.ts'

type Open = UpstreamDetails['circuits'][number]
type Change = UpstreamDetails['changes'][number]
type Failure = Open['first']

/** Number of changes that are shown at first. */
const STEP = 50

const CAUSES: readonly Column<Pick<Open, 'first' | 'last' | 'failures'>>[] = [
  { id: 'failures', title: 'Failures', align: 'right', cell: ({ failures }) => count(failures) },
  { id: 'first', title: 'First failure (UTC)', long: 'wrap', cell: ({ first }) => <Cause of={first} /> },
  { id: 'last', title: 'Last failure (UTC)', long: 'wrap', cell: ({ last }) => <Cause of={last} /> },
]

/** The circuits that are open or half-open, with the start and the cause. */
export function OpenCircuits({ circuits }: Pick<UpstreamDetails, 'circuits'>) {
  return (
    <Section title="Open circuits" flush={circuits.length > 0}
      about={circuits.length === 0 ? 'All circuits are closed' : 'Since when, and what failed first and last'}>
      {circuits.length === 0
        ? <StatusBadge tone="good">Closed</StatusBadge>
        : <DataTable<Open> label="Open circuits" rows={circuits} id={({ model }) => model ?? ''} phone="cards" columns={[
            { id: 'model', title: 'Model', cell: ({ model }) => model ?? 'all models' },
            {
              id: 'circuit', title: 'Circuit',
              cell: ({ circuit }) => (
                <StatusBadge tone={circuit === 'open' ? 'bad' : 'warn'}>{circuit === 'open' ? 'Open' : 'Half-open'}</StatusBadge>
              ),
            },
            { id: 'since', title: 'Since (UTC)', cell: ({ since }) => (since === null ? 'unknown' : <Time at={since} />) },
            ...CAUSES,
          ]} />}
    </Section>
  )
}

/** The changes of circuits, the newest first. */
export function CircuitChanges({ changes }: Pick<UpstreamDetails, 'changes'>) {
  const withWorkers = changes.some(({ worker }) => worker > 0)
  return (
    <Section title="Circuit changes" flush>
      {changes.length === 0
        ? <Empty title="No circuit opened or closed in this time range" />
        : <DataTable<Change> label="Circuit changes" rows={changes.toReversed()} step={STEP} phone="cards"
            id={({ at, worker, model, state }) => `${at} ${worker} ${model} ${state}`} columns={[
              { id: 'at', title: 'Time (UTC)', cell: ({ at }) => <Time at={at} /> },
              { id: 'model', title: 'Model', cell: ({ model }) => model ?? 'all models' },
              ...withWorkers ? [{ id: 'worker', title: 'Worker', cell: ({ worker }: Change) => count(worker) }] : [],
              {
                id: 'state', title: 'Change',
                cell: ({ state }) => (
                  <StatusBadge tone={state === 'open' ? 'bad' : 'good'}>{state === 'open' ? 'Opened' : 'Closed'}</StatusBadge>
                ),
              },
              ...CAUSES,
            ]} />}
    </Section>
  )
}

/** What failed, and when, with a link to the failed request. */
function Cause({ of }: { readonly of: Failure }) {
  if (of === null) return <span className="dim">unknown</span>
  return (
    <span>
      {of.request_id === null
        ? of.reason
        : <Link href={`/logs/${encodeURIComponent(of.request_id)}`}>{of.reason}</Link>}
      {' '}<small className="dim"><Time at={of.at} /></small>
    </span>
  )
}
