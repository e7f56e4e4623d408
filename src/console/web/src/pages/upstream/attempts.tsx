import { Link } from 'wouter'
import type { UpstreamReport } from '../../../../api/upstream.ts'
import { DataTable } from '../../components/data-table.tsx'
import { Section } from '../../components/page/page.tsx'
import { Empty } from '../../components/page/states.tsx'
import { count } from '../../format.ts'

/** The table of how attempts at the upstream ended. */
export function AttemptTable({ attempts }: Pick<UpstreamReport, 'attempts'>) {
  return (
    <Section title="Attempts" about="A request can have several" flush>
      {attempts.length === 0
        ? <Empty title="No attempts in this time range" />
        : <DataTable label="Attempts" rows={attempts} id={({ outcome }) => outcome} columns={[
            { id: 'outcome', title: 'Outcome', cell: ({ outcome }) => <code>{outcome}</code> },
            { id: 'count', title: 'Attempts', align: 'right', sort: row => row.count, cell: row => count(row.count) },
          ]} />}
    </Section>
  )
}

export interface FailoverTableProps {
  readonly title: string
  readonly rows: UpstreamReport['failovers_to']
}

/** The table of failovers between this upstream and other upstreams. */
export function FailoverTable({ title, rows }: FailoverTableProps) {
  return (
    <Section title={title} flush>
      {rows.length === 0
        ? <Empty title="None in this time range" />
        : <DataTable label={title} rows={rows} id={({ upstream }) => upstream} columns={[
            {
              id: 'upstream', title: 'Upstream',
              cell: ({ upstream }) => <Link href={`/upstreams/${encodeURIComponent(upstream)}`}>{upstream}</Link>,
            },
            { id: 'count', title: 'Failovers', align: 'right', sort: row => row.count, cell: row => count(row.count) },
          ]} />}
    </Section>
  )
}
