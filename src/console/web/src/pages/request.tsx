import { Anchor, Button } from '@mantine/core'
import { IconArrowLeft } from '@tabler/icons-react'
import { Link, useParams } from 'wouter'
import { useHistoryState } from 'wouter/use-browser-location'
import type { RequestDetails } from '../../../api/logs.ts'
import { useApiQuery } from '../api-hooks.ts'
import { NameLabel } from '../components/badges.tsx'
import { CodeBlock } from '../components/code-block.tsx'
import { Copy } from '../components/copy.tsx'
import { EndBadge } from '../components/end-badge.tsx'
import { Columns, Page, Section, Stack } from '../components/page/page.tsx'
import { Empty, LoadError, Loading } from '../components/page/states.tsx'
import tones from '../components/tones.module.css'
import { bytes, quantity, timeExact, timeLocal } from '../format.ts'
import { logsHref } from '../links.ts'
import { tagText } from '../tag-text.ts'
import { useNow } from '../use-now.ts'
import { customRange } from '../range.ts'
import { useUser } from '../session.ts'
import { adviceFor } from './request/advice.ts'
import { Bodies } from './request/bodies.tsx'
import { Cost } from './request/cost.tsx'
import { explainLink, headline, upstreamRole } from './request/headline.ts'
import classes from './request/request.module.css'
import { TimelineTable } from './request/timeline-table.tsx'

/** ms between two refreshes while the request is running. */
const REFRESH = 1000
/** ms before and after the request for the link "Requests around this time". */
const AROUND = 5 * 60_000

/** All data of the ledger about one request. */
export default function RequestPage() {
  const id = decoded(useParams<{ id: string }>().id)
  const query = useApiQuery('GET /logs/:id', { params: { id } })
  const stories = query.isPlaceholderData ? undefined : query.data?.stories
  const startedAt = stories?.[0]?.row.started_at
  const list = listOf(useHistoryState<unknown>())
  return (
    <Page title="Request"
      about={<span className={classes.id}><code>{id}</code><Copy value={id} what="request ID" /></span>}
      actions={
        <>
          {startedAt !== undefined && (
            <Button component={Link} href={aroundHref(startedAt)} variant="default" size="sm">
              Requests around this time
            </Button>
          )}
          <Button component={Link} href={list ?? '/logs'} variant="default" size="sm"
            leftSection={<IconArrowLeft size={16} stroke={1.6} aria-hidden />}>
            {list === null ? 'All requests' : 'Back to list'}
          </Button>
        </>
      }>
      {stories === undefined
        ? query.isError ? <LoadError error={query.error} retry={() => { void query.refetch() }} />
          : <Loading height={520} />
        : stories.length === 0 ? <NotFound retry={() => { void query.refetch() }} />
        : <RequestList stories={stories} traceUrl={query.data?.trace_url ?? null} />}
      {query.data?.has_bodies === true && !query.isPlaceholderData && <Bodies key={id} id={id} />}
      {stories?.some(({ running }) => running) && <Refresh id={id} />}
    </Page>
  )
}

/** Decodes a part of the path, because the router does not decode escapes such as `%3A`. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // The text contains a percent sign that begins no escape.
    return part
  }
}

/** URL of the list with its filters; null = the page was not opened from a list. */
function listOf(state: unknown): string | null {
  const list = state !== null && typeof state === 'object' && 'list' in state ? state.list : null
  return typeof list === 'string' && list.startsWith('/logs') ? list : null
}

/** Link to all requests that started shortly before or after. */
function aroundHref(startedAt: string): string {
  const at = Date.parse(startedAt)
  return logsHref(customRange(new Date(at - AROUND).toISOString(), new Date(at + AROUND).toISOString()), {})
}

/** Refreshes the request as long as this component is mounted. */
function Refresh({ id }: { readonly id: string }) {
  useApiQuery('GET /logs/:id', { params: { id } }, { every: REFRESH })
  return null
}

function NotFound({ retry }: { readonly retry: () => void }) {
  return (
    <Section title="Request not found">
      <Empty title="No request with this ID">
        Check that the full ID was copied from the x-gateway-request-id response header. A new request appears
        after a moment. The ledger deletes old requests after its retention period.
        <Button variant="default" size="xs" display="block" mt="sm" mx="auto"
          onClick={retry}>Try again</Button>
      </Empty>
    </Section>
  )
}

interface RequestListProps {
  readonly stories: readonly RequestDetails[]
  readonly traceUrl: string | null
}

function RequestList({ stories, traceUrl }: RequestListProps) {
  if (stories.length === 1) return stories.map(story =>
    <RequestView key={story.row.started_at} story={story} traceUrl={traceUrl} title="Summary" />)
  return (
    <>
      <p className={classes.many}>
        {stories.length} requests have this ID, because a trusted proxy sent it more than once. Oldest first.
      </p>
      {stories.map((story, n) => (
        <RequestView key={`${story.row.started_at} ${story.row.duration_ms}`} story={story}
          traceUrl={traceUrl} title={`Request ${n + 1} of ${stories.length}`} />
      ))}
    </>
  )
}

interface RequestViewProps {
  readonly story: RequestDetails
  /** The URL of a trace, with {trace_id}; null = traces have no URL. */
  readonly traceUrl: string | null
  readonly title: string
}

function RequestView({ story, traceUrl, title }: RequestViewProps) {
  const { row, running } = story
  const elapsedMs = useNow(running ? 500 : 60_000) - Date.parse(row.started_at)
  return (
    <Stack>
      <Section title={title} actions={<EndBadge end={row.end} status={row.status} running={running} />}>
        <div className={classes.head}>
          <p className={classes.headline}
            aria-live={running ? 'off' : undefined}>{headline(story, elapsedMs)}</p>
          {!running && <AdviceNote story={story} />}
          <Facts story={story} traceUrl={traceUrl} />
        </div>
      </Section>
      <Section title="Timeline" flush>
        <TimelineTable story={story} elapsedMs={elapsedMs} />
      </Section>
      <UpstreamErrors story={story} />
      <Columns least={24}>
        <Section title="Cost"><Cost story={story} /></Section>
        <Section title="Usage"><UsageCounts story={story} /></Section>
      </Columns>
      <Route story={story} />
    </Stack>
  )
}

/** The errors that upstreams reported. Hidden from key holders. */
function UpstreamErrors({ story: { attempts } }: { readonly story: RequestDetails }) {
  const failed = attempts.flatMap(({ upstream, error_name, error_text }, n) =>
    (error_text === null ? [] : [{ n, title: [`Attempt ${n + 1}`, upstream, error_name].filter(Boolean).join(', '), error_text }]))
  if (failed.length === 0) return null
  return (
    <Section title="Upstream errors" about="The beginning of each error, with secrets masked">
      <Stack>
        {failed.map(({ n, title, error_text }) => (
          <div key={n}><h3>{title}</h3><CodeBlock label={`Error of ${title}`} form="bounded">{error_text}</CodeBlock></div>
        ))}
      </Stack>
    </Section>
  )
}

/** The counts of usage. A count with an indented label is a part of the count above it. */
function UsageCounts({ story: { counts, bytes_in, bytes_out } }: { readonly story: RequestDetails }) {
  const lines = [
    ...counts,
    { label: 'request bytes', value: bytes_in },
    { label: 'response bytes', value: bytes_out },
  ]
  return (
    <dl className={classes.counts}>
      {lines.map(({ label, value }, at) => {
        const whole = label.startsWith(' ')
          ? lines.findLast((line, n) => n < at && !line.label.startsWith(' ')) : undefined
        return (
          <div key={`${whole?.label} ${label}`} data-part={whole ? true : undefined}>
            <dt>{whole && <span className="unseen">{whole.label}, </span>}{label.trim()}</dt>
            <dd>{quantity(value)}</dd>
          </div>
        )
      })}
    </dl>
  )
}

const WHO = { client: 'What to do', operator: 'What to do (operator)' } as const

/** Says why the request failed, and what to do. */
function AdviceNote({ story }: { readonly story: RequestDetails }) {
  const { row, end_explanation, error_explanation } = story
  const advice = adviceFor(row)
  if (advice === null) return null
  return (
    <div className={`${classes.advice} ${tones.warn}`}>
      <p>
        <strong>Cause:</strong> {error_explanation ?? lastAttemptError(story)
          ?? `${end_explanation.charAt(0).toUpperCase()}${end_explanation.slice(1)}.`}
        {row.error !== null && <> <code>{row.error}</code></>}
      </p>
      <p><strong>{WHO[advice.who]}:</strong> {advice.text}</p>
    </div>
  )
}

/** The error of the last attempt; null = the last attempt did not fail. */
function lastAttemptError({ row: { end }, attempts }: RequestDetails): string | null {
  const last = attempts.at(-1)
  if (end !== 'error' || !last || last.outcome === 'ok') return null
  return last.explanation
}

function Facts({ story, traceUrl }: Omit<RequestViewProps, 'title'>) {
  const { row, bytes_in, bytes_out, trace_id: traceId } = story
  const forKey = useUser().role === 'key'
  const renamed = row.upstream_model !== null && row.upstream_model !== row.model
  return (
    <dl className={classes.facts}>
      <div><dt>Started (UTC)</dt><dd className="numbers"><time dateTime={row.started_at}>{timeExact(row.started_at)}</time></dd></div>
      <div><dt>Started (local)</dt><dd className="numbers">{timeLocal(row.started_at)}</dd></div>
      <div><dt>Key</dt><dd><NameLabel kind="key" name={row.key} /></dd></div>
      <div><dt>Model</dt><dd><NameLabel kind="model" name={row.model} /></dd></div>
      {!forKey && (
        <div>
          <dt>{upstreamRole(story)}</dt>
          <dd><NameLabel kind="upstream" name={row.upstream} />{renamed
            && <span className="dim"> as {row.upstream_model}</span>}</dd>
        </div>
      )}
      <div><dt>Endpoint</dt><dd>{row.endpoint ?? 'unknown'}{row.protocol !== null
        && <span className="dim"> ({row.protocol})</span>}</dd></div>
      <Attribution story={story} />
      <Translation story={story} />
      {row.unreadable.length > 0 && <div><dt>Unreadable in the ledger</dt><dd>{row.unreadable.join(', ')}</dd></div>}
      <div><dt>Request / response size</dt><dd>{bytes(bytes_in)} / {bytes(bytes_out)}</dd></div>
      {traceId !== null && (
        <div>
          <dt>Trace</dt>
          <dd>{traceUrl === null
            ? <code>{traceId}</code>
            : <Anchor href={traceUrl.replace('{trace_id}', traceId)} target="_blank" rel="noreferrer">{traceId}</Anchor>}
          </dd>
        </div>
      )}
    </dl>
  )
}

/** The user and the purpose of the request, who paid the upstream, how long the request waited for room, and what rules did. */
function Attribution({ story: { row: { user, tags, billed, queued_ms: queued, policy } } }: { readonly story: RequestDetails }) {
  return (
    <>
      {user !== null && <div><dt>User</dt><dd>{user}</dd></div>}
      {tags !== null && <div><dt>Tags</dt><dd>{tagText(tags)}</dd></div>}
      {billed !== null && <div><dt>Upstream paid by</dt><dd>{billed}</dd></div>}
      {queued !== null && <div><dt>Waited in queues</dt><dd>{Math.round(queued)} ms</dd></div>}
      {policy !== null && <div><dt>Rules</dt><dd>{policy.map(({ rule, action, count }) => `${rule}: ${action} (${count})`).join(', ')}</dd></div>}
    </>
  )
}

/** Both protocols of a translated request, and the fields that the upstream did not get. */
function Translation({ story: { attempts } }: { readonly story: RequestDetails }) {
  const last = attempts.at(-1)
  if (!last) return null
  return (
    <>
      {last.translated !== null && <div><dt>Translated</dt><dd>{last.translated.replace('->', ' to ')}</dd></div>}
      {last.dropped.length > 0 && <div><dt>Fields dropped</dt><dd>{last.dropped.join(', ')}</dd></div>}
    </>
  )
}

/** The route of the request. Hidden from key holders. */
function Route({ story }: { readonly story: RequestDetails }) {
  const { role } = useUser()
  if (role === 'key') return null
  const link = explainLink(story.row)
  return (
    <Section title="Route">
      {story.route === null
        ? <p>No route matched.</p>
        : <code className={classes.route}>{story.route}</code>}
      {link !== null && (
        <p><Anchor component={Link} href={link}>Explain how such a request is routed now</Anchor></p>
      )}
    </Section>
  )
}
