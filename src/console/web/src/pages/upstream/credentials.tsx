import type { UpstreamDetails } from '../../../../api/upstream.ts'
import { StatusBadge, type Tone } from '../../components/badges.tsx'
import { DataTable, type Column } from '../../components/data-table.tsx'
import { Section } from '../../components/page/page.tsx'
import { Time } from '../../components/time.tsx'
import { count } from '../../format.ts'

type Credential = UpstreamDetails['credentials'][number]
type Row = Credential & { readonly at: number }

const KINDS: Readonly<Record<Credential['kind'], string>> = {
  static: 'Fixed', file: 'File', command: 'Command', oauth2: 'OAuth 2.0', azure: 'Microsoft Entra ID', aws: 'AWS', google: 'Google Cloud',
  client: "The client's own",
}

const STATES: Readonly<Record<Credential['state'], { tone: Tone, text: string }>> = {
  ready: { tone: 'good', text: 'Ready' },
  refresh_failing: { tone: 'warn', text: 'Last refresh failed' },
  rate_limited: { tone: 'warn', text: 'At its rate limit' },
  refused: { tone: 'bad', text: 'Refused' },
  unavailable: { tone: 'bad', text: 'Unavailable' },
}

const COLUMNS: readonly Column<Row>[] = [
  { id: 'at', title: 'Credential', cell: ({ at, kind }) => <>{count(at)}. {KINDS[kind]}</> },
  {
    id: 'state', title: 'State', long: 'wrap',
    cell: ({ kind, state, fault }) => kind === 'client' ? 'Sent with each request' : (
      <span>
        <StatusBadge tone={STATES[state].tone}>{STATES[state].text}</StatusBadge>
        {fault !== null && <> <small>credentials: {fault}</small></>}
      </span>
    ),
  },
  { id: 'rests', title: 'Not used until (UTC)', cell: ({ rests_until: until }) => <Moment at={until} /> },
  { id: 'fetched', title: 'Last refresh (UTC)', cell: ({ fetched_at: at }) => <Moment at={at} /> },
  { id: 'expires', title: 'Expires (UTC)', cell: ({ expires_at: at }) => <Moment at={at} /> },
  { id: 'requests', title: 'Requests left', align: 'right', cell: ({ rate_limits: limits }) => left(limits?.requests) },
  { id: 'tokens', title: 'Tokens left', align: 'right', cell: ({ rate_limits: limits }) => left(limits?.tokens) },
]

/** The credentials of an upstream: whether each is used, when it was refreshed, and what remains of its limits as the upstream reports. */
export function Credentials({ credentials }: Pick<UpstreamDetails, 'credentials'>) {
  if (credentials.length === 0) return null
  const rows = credentials.map((credential, index) => ({ ...credential, at: index + 1 }))
  return (
    <Section title="Credentials" about="Requests and tokens left are as of the last response" flush>
      <DataTable label="Credentials" rows={rows} columns={COLUMNS} id={({ at }) => String(at)} phone="cards" />
    </Section>
  )
}

function Moment({ at }: { readonly at: string | null }) {
  return at === null ? '–' : <Time at={at} />
}

function left(of: NonNullable<Credential['rate_limits']>['requests'] | undefined): string {
  return of ? `${count(of.remaining)} of ${count(of.limit)}` : '–'
}
