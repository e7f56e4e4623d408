import { Anchor, Tabs } from '@mantine/core'
import { IconLoader } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { send } from '../../api.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copy } from '../../components/copy.tsx'
import { Problem } from '../../components/page/problem.tsx'
import { Empty } from '../../components/page/states.tsx'
import { count, duration, money } from '../../format.ts'
import classes from './playground.module.css'
import type { Progress } from './run.ts'

/** Maximum number of events to show. If there are more, the latest are shown. */
const MAX_EVENTS = 500

/** The response to a playground request, while it arrives and after it is complete. */
export function ResponseView({ progress }: { readonly progress: Progress | null }) {
  if (progress === null) {
    return <Empty title="No request sent">The response appears here as it arrives.</Empty>
  }
  return (
    <div className={classes.outcome}>
      <Summary progress={progress} />
      <Tabs defaultValue="text" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="text">Response</Tabs.Tab>
          <Tabs.Tab value="raw">{progress.eventCount > 0 ? `Events (${count(progress.eventCount)})`
            : 'Raw'}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="text"><ResponseText progress={progress} /></Tabs.Panel>
        <Tabs.Panel value="raw" className={classes.raw}><Raw progress={progress} /></Tabs.Panel>
      </Tabs>
    </div>
  )
}

function ResponseText({ progress: { text, reasoning, toolCalls, error, phase, body } }: { readonly progress: Progress }) {
  const isBusy = phase === 'waiting' || phase === 'reading'
  return (
    <div className={classes.response} aria-busy={isBusy}>
      {reasoning !== '' && (
        <details>
          <summary>Reasoning</summary>
          <p className={classes.text}>{reasoning}</p>
        </details>
      )}
      {text !== '' && <p className={classes.text} data-testid="response">{text}</p>}
      {toolCalls.length > 0 && (
        <ul className={classes.calls} aria-label="Tool calls">
          {toolCalls.map(({ name, input }, index) => (
            // oxlint-disable-next-line react/no-array-index-key -- the order of calls never changes
            <li key={index}>
              <span className="dim">Tool call</span> <code>{name}</code>
              <CodeBlock label={`Arguments of ${name}`} form="bounded">{pretty(input)}</CodeBlock>
            </li>
          ))}
        </ul>
      )}
      {error !== null && <Problem error={new Error(error)} />}
      {phase === 'failed' && body !== '' && (
        <>
          <p className={classes.note}>Response to the client:</p>
          <CodeBlock label="Error response" form="bounded">{pretty(body)}</CodeBlock>
        </>
      )}
      {text === '' && toolCalls.length === 0 && error === null && (
        <p className="dim">{isBusy ? 'Waiting for the first token' : phase === 'stopped'
          ? 'Stopped before the first token.' : 'The response has no text.'}</p>
      )}
    </div>
  )
}

function Raw({ progress: { events, eventCount, body } }: { readonly progress: Progress }) {
  const shown = events.slice(Math.max(0, eventCount - MAX_EVENTS), eventCount)
  const text = eventCount > 0
    ? shown.map(({ name, data }) => `${name === null ? '' : `event: ${name}\n`}data: ${data}`).join('\n\n')
    : pretty(body)
  return (
    <>
      {eventCount > MAX_EVENTS
        && <p className={classes.note}>Latest {MAX_EVENTS} of {count(eventCount)} events.</p>}
      <CodeBlock label="Raw response" form="bounded">{text === '' ? 'Nothing received yet.' : text}</CodeBlock>
    </>
  )
}

const PHASES = {
  waiting: { tone: 'accent', label: 'Sent' },
  reading: { tone: 'accent', label: 'Receiving' },
  complete: { tone: 'good', label: 'Complete' },
  failed: { tone: 'bad', label: 'Failed' },
  stopped: { tone: 'plain', label: 'Stopped' },
} as const

function Summary({ progress }: { readonly progress: Progress }) {
  const { phase, status, firstByteMs, totalMs, usage, finish, requestId } = progress
  const { tone, label } = PHASES[phase]
  const isOver = phase !== 'waiting' && phase !== 'reading'
  return (
    <div className={classes.summary}>
      <output>
        <StatusBadge tone={tone}>
          {!isOver && <IconLoader size={13} stroke={2} aria-hidden />}
          {status !== null && `${status} `}{label}
        </StatusBadge>
      </output>
      <dl>
        <Fact label="First byte">{duration(firstByteMs)}</Fact>
        <Fact label="Total">{duration(totalMs)}</Fact>
        {finish !== null && <Fact label="Finish reason">{finish}</Fact>}
        {isOver && requestId !== null && <Cost id={requestId} />}
      </dl>
      {usage !== null && (
        <p className={classes.usage}>
          <span className="dim">Reported usage:</span>{' '}
          {Object.entries(usage).map(([name, value]) => `${name} ${count(value)}`).join(', ')}
        </p>
      )}
      {requestId !== null && (
        <p className={classes.id}>
          <span className="dim">Request ID</span> <code>{requestId}</code> <Copy value={requestId}
            what="request ID" />
          {isOver && <Anchor component={Link}
            href={`/logs/${encodeURIComponent(requestId)}`}>Details</Anchor>}
        </p>
      )}
    </div>
  )
}

/** The cost from the ledger. Asks again until the ledger contains the request. */
function Cost({ id }: { readonly id: string }) {
  const { data } = useQuery({
    queryKey: ['GET /logs/:id', { params: { id } }, 'cost'],
    queryFn: ({ signal }) => send('GET /logs/:id', { params: { id } }, { signal, live: true }),
    refetchInterval: ({ state }) =>
      (state.data?.stories.some(({ running }) => !running) || state.dataUpdateCount > 40 ? false : 500),
  })
  const request = data?.stories.findLast(({ running }) => !running)
  if (request === undefined) return <Fact label="Cost"><span className="dim">…</span></Fact>
  const { cost_usd, source, input_tokens, output_tokens } = request.row
  return (
    <>
      <Fact label="Tokens in / out">{count(input_tokens)} / {count(output_tokens)}</Fact>
      <Fact label={source === 'estimated' || source === 'mixed' ? 'Cost (estimated)' : 'Cost'}>
        <span data-testid="cost">{cost_usd === null ? 'unknown: no price' : money(cost_usd)}</span>
      </Fact>
    </>
  )
}

function Fact({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return <div><dt>{label}</dt><dd>{children}</dd></div>
}

/** Indents text that is JSON. Any other text stays unchanged. */
function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body // not JSON, such as an HTML error page
  }
}
