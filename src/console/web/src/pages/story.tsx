import { Anchor, Button } from '@mantine/core'
import { IconArrowLeft } from '@tabler/icons-react'
import { Link, useParams } from 'wouter'
import { useHistoryState } from 'wouter/use-browser-location'
import type { RequestDetails } from '../../../api/logs.ts'
import { useApiQuery } from '../ask.ts'
import { NameLabel } from '../components/badges.tsx'
import { Copy } from '../components/copy.tsx'
import { EndBadge } from '../components/end-mark.tsx'
import { Columns, Page, Section, Stack } from '../components/page.tsx'
import { Empty, Failure, Loading } from '../components/states.tsx'
import { Time } from '../components/time.tsx'
import tones from '../components/tones.module.css'
import { bytes } from '../format.ts'
import { logsHref } from '../links.ts'
import { useNow } from '../now.ts'
import { customRange } from '../range.ts'
import { useUser } from '../session.ts'
import { adviceFor } from './story/advice.ts'
import { Bodies } from './story/bodies.tsx'
import { Cost } from './story/cost.tsx'
import { explainLink, headline, upstreamRole } from './story/headline.ts'
import classes from './story/story.module.css'
import { TimelineTable } from './story/timeline-table.tsx'

/** Milliseconds between two looks at a request that is under way. */
const REFRESH = 1000
/** Milliseconds before and after a request that are around it. */
const AROUND = 5 * 60_000

/** All that is known of one request, for somebody who answers a question about it. */
export default function RequestPage() {
  const id = decoded(useParams<{ id: string }>().id)
  const answer = useApiQuery('GET /logs/:id', { params: { id } })
  const stories = answer.isPlaceholderData ? undefined : answer.data?.stories
  const began = stories?.[0]?.row.started_at
  const list = listOf(useHistoryState<unknown>())
  return (
    <Page title="Request"
      about={<span className={classes.id}><code>{id}</code><Copy value={id} what="request id" /></span>}
      actions={
        <>
          {began !== undefined && (
            <Button component={Link} href={aroundHref(began)} variant="default" size="sm">
              Around that time
            </Button>
          )}
          <Button component={Link} href={list ?? '/logs'} variant="default" size="sm"
            leftSection={<IconArrowLeft size={16} stroke={1.6} aria-hidden />}>
            {list === null ? 'All requests' : 'Back to the list'}
          </Button>
        </>
      }>
      {stories === undefined
        ? answer.isError ? <Failure error={answer.error} retry={() => { void answer.refetch() }} />
          : <Loading height={520} />
        : stories.length === 0 ? <Unknown retry={() => { void answer.refetch() }} />
        : <Stories stories={stories} />}
      {answer.data?.has_bodies === true && !answer.isPlaceholderData && <Bodies key={id} id={id} />}
      {stories?.some(({ running }) => running) && <Refresh id={id} />}
    </Page>
  )
}

/** The router leaves `%3A` and its kin as they stand in the address. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // A bare % is nobody's escape.
    return part
  }
}

/** The list that the story was opened from, with its filters; null where it was opened from elsewhere. */
function listOf(state: unknown): string | null {
  const list = state !== null && typeof state === 'object' && 'list' in state ? state.list : null
  return typeof list === 'string' && list.startsWith('/logs') ? list : null
}

/** What else was asked then: minutes before and after it. */
function aroundHref(began: string): string {
  const at = Date.parse(began)
  return logsHref(customRange(new Date(at - AROUND).toISOString(), new Date(at + AROUND).toISOString()), {})
}

/** Asks again while it is there. */
function Refresh({ id }: { readonly id: string }) {
  useApiQuery('GET /logs/:id', { params: { id } }, { every: REFRESH })
  return null
}

function Unknown({ retry }: { readonly retry: () => void }) {
  return (
    <Section title="Nothing is known of it">
      <Empty title="No request has this id">
        Look whether all of it was copied: it is the x-gateway-request-id of the answer. What has just begun
        is there after a moment; what is older than the ledger keeps is gone.
        <Button variant="default" size="xs" display="block" mt="sm" mx="auto"
          onClick={retry}>Look again</Button>
      </Empty>
    </Section>
  )
}

function Stories({ stories }: { readonly stories: readonly RequestDetails[] }) {
  if (stories.length === 1) return stories.map(story =>
    <Told key={story.row.started_at} story={story} title="What happened" />)
  return (
    <>
      <p className={classes.many}>
        {stories.length} requests have this id: a proxy that the gateway trusts gave it more than once.
        The oldest stands first.
      </p>
      {stories.map((story, n) => (
        <Told key={`${story.row.started_at} ${story.row.duration_ms}`} story={story}
          title={`Request ${n + 1} of ${stories.length}`} />
      ))}
    </>
  )
}

function Told({ story, title }: { readonly story: RequestDetails; readonly title: string }) {
  const { row, running } = story
  const elapsedMs = useNow(running ? 500 : 60_000) - Date.parse(row.started_at)
  return (
    <Stack>
      <Section title={title} actions={<EndBadge end={row.end} status={row.status} running={running} />}>
        <div className={classes.head}>
          <p className={classes.headline}
            aria-live={running ? 'off' : undefined}>{headline(story, elapsedMs)}</p>
          {!running && <Advised story={story} />}
          <Facts story={story} />
        </div>
      </Section>
      <Section title="Timeline" flush>
        <TimelineTable story={story} elapsedMs={elapsedMs} />
      </Section>
      <Columns least={24}>
        <Section title="Cost"><Cost story={story} /></Section>
        <Section title="Counts">
          <Counts story={story} />
        </Section>
      </Columns>
      <Route story={story} />
    </Stack>
  )
}

/** Labels that are indented name a part of what stands above. */
function Counts({ story: { counts, bytes_in, bytes_out } }: { readonly story: RequestDetails }) {
  const lines = [
    ...counts,
    { label: 'bytes of the request', value: bytes_in },
    { label: 'bytes of the answer', value: bytes_out },
  ]
  return (
    <dl className={classes.counts}>
      {lines.map(({ label, value }, at) => {
        const whole = label.startsWith(' ')
          ? lines.findLast((line, n) => n < at && !line.label.startsWith(' ')) : undefined
        return (
          <div key={`${whole?.label} ${label}`} data-part={whole ? true : undefined}>
            <dt>{whole && <span className="unseen">{whole.label}, </span>}{label.trim()}</dt>
            <dd>{value.toLocaleString('en-US', { maximumFractionDigits: 3 })}</dd>
          </div>
        )
      })}
    </dl>
  )
}

const WHO = { client: 'What to do', operator: 'What to do, for whoever runs the gateway' } as const

/** What ended it, and what to do about that. */
function Advised({ story }: { readonly story: RequestDetails }) {
  const { row, end_explanation, error_explanation } = story
  const advice = adviceFor(row)
  if (advice === null) return null
  return (
    <div className={`${classes.advice} ${tones.warn}`}>
      <p>
        <strong>Why:</strong> {error_explanation ?? lastWord(story)
          ?? `${end_explanation.charAt(0).toUpperCase()}${end_explanation.slice(1)}.`}
        {row.error !== null && <> <code>{row.error}</code></>}
      </p>
      <p><strong>{WHO[advice.who]}:</strong> {advice.text}</p>
    </div>
  )
}

/** What is said of the attempt with which it ended, where that failed. */
function lastWord({ row: { end }, attempts }: RequestDetails): string | null {
  const last = attempts.at(-1)
  if (end !== 'error' || !last || last.outcome === 'ok') return null
  return last.explanation.replace(/^It /, 'The upstream ')
}

function Facts({ story }: { readonly story: RequestDetails }) {
  const { row, bytes_in, bytes_out } = story
  const forKey = useUser().role === 'key'
  const renamed = row.upstream_model !== null && row.upstream_model !== row.model
  return (
    <dl className={classes.facts}>
      <div><dt>Began, UTC</dt><dd><Time at={row.started_at} /></dd></div>
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
      <div><dt>Size, in and out</dt><dd>{bytes(bytes_in)}, {bytes(bytes_out)}</dd></div>
    </dl>
  )
}

/** Why this route; key holders are told nothing of routes. */
function Route({ story }: { readonly story: RequestDetails }) {
  const { role } = useUser()
  if (role === 'key') return null
  const link = explainLink(story.row)
  return (
    <Section title="Why this route">
      {story.route === null
        ? <p>No route took it.</p>
        : <code className={classes.route}>{story.route}</code>}
      {link !== null && (
        <p><Anchor component={Link} href={link}>Explain where such a request goes now</Anchor></p>
      )}
    </Section>
  )
}
