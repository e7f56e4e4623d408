import { Anchor, Tabs } from '@mantine/core'
import { IconLoader } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { send } from '../../api.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { CodeBlock } from '../../components/code-block.tsx'
import { Copy } from '../../components/copy.tsx'
import { Problem } from '../../components/problem.tsx'
import { Empty } from '../../components/states.tsx'
import { count, duration, money } from '../../format.ts'
import classes from './playground.module.css'
import type { Progress } from './run.ts'

/** As many events are shown, the latest ones. */
const MOST_EVENTS = 500

/** What came of a request, while it comes and after. */
export function Outcome({ progress }: { readonly progress: Progress | null }) {
  if (progress === null) {
    return <Empty title="Nothing was sent yet">The answer appears here as it comes.</Empty>
  }
  return (
    <div className={classes.outcome}>
      <Summary progress={progress} />
      <Tabs defaultValue="text" keepMounted={false}>
        <Tabs.List>
          <Tabs.Tab value="text">Answer</Tabs.Tab>
          <Tabs.Tab value="raw">{progress.eventCount > 0 ? `Events (${count(progress.eventCount)})`
            : 'As it came'}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="text"><Answer progress={progress} /></Tabs.Panel>
        <Tabs.Panel value="raw" className={classes.raw}><Raw progress={progress} /></Tabs.Panel>
      </Tabs>
    </div>
  )
}

function Answer({ progress: { text, reasoning, error, phase, body } }: { readonly progress: Progress }) {
  const isBusy = phase === 'waiting' || phase === 'reading'
  return (
    <div className={classes.answer} aria-busy={isBusy}>
      {reasoning !== '' && (
        <details>
          <summary>Reasoning</summary>
          <p className={classes.text}>{reasoning}</p>
        </details>
      )}
      {text !== '' && <p className={classes.text} data-testid="answer">{text}</p>}
      {error !== null && <Problem error={new Error(error)} />}
      {phase === 'failed' && body !== '' && (
        <>
          <p className={classes.note}>What a client would get:</p>
          <CodeBlock label="The error" form="bounded">{pretty(body)}</CodeBlock>
        </>
      )}
      {text === '' && error === null && (
        <p className="dim">{isBusy ? 'Waiting for the first word' : phase === 'stopped'
          ? 'Stopped before the first word.' : 'The answer has no text.'}</p>
      )}
    </div>
  )
}

function Raw({ progress: { events, eventCount, body } }: { readonly progress: Progress }) {
  const shown = events.slice(Math.max(0, eventCount - MOST_EVENTS), eventCount)
  const text = eventCount > 0
    ? shown.map(({ name, data }) => `${name === null ? '' : `event: ${name}\n`}data: ${data}`).join('\n\n')
    : pretty(body)
  return (
    <>
      {eventCount > MOST_EVENTS
        && <p className={classes.note}>The latest {MOST_EVENTS} of {count(eventCount)}.</p>}
      <CodeBlock label="As it came" form="bounded">{text === '' ? 'Nothing came yet.' : text}</CodeBlock>
    </>
  )
}

const PHASES = {
  waiting: { tone: 'accent', word: 'Sent' },
  reading: { tone: 'accent', word: 'Answering' },
  complete: { tone: 'good', word: 'Complete' },
  failed: { tone: 'bad', word: 'Failed' },
  stopped: { tone: 'plain', word: 'Stopped' },
} as const

function Summary({ progress }: { readonly progress: Progress }) {
  const { phase, status, firstByteMs, totalMs, usage, finish, requestId } = progress
  const { tone, word } = PHASES[phase]
  const isOver = phase !== 'waiting' && phase !== 'reading'
  return (
    <div className={classes.summary}>
      <output>
        <StatusBadge tone={tone}>
          {!isOver && <IconLoader size={13} stroke={2} aria-hidden />}
          {status !== null && `${status} `}{word}
        </StatusBadge>
      </output>
      <dl>
        <Fact label="First byte">{duration(firstByteMs)}</Fact>
        <Fact label="Total">{duration(totalMs)}</Fact>
        {finish !== null && <Fact label="Ended by">{finish}</Fact>}
        {isOver && requestId !== null && <Cost id={requestId} />}
      </dl>
      {usage !== null && (
        <p className={classes.usage}>
          <span className="dim">Usage, as reported:</span>{' '}
          {Object.entries(usage).map(([name, value]) => `${name} ${count(value)}`).join(', ')}
        </p>
      )}
      {requestId !== null && (
        <p className={classes.id}>
          <span className="dim">Request</span> <code>{requestId}</code> <Copy value={requestId}
            what="request id" />
          {isOver && <Anchor component={Link}
            href={`/logs/${encodeURIComponent(requestId)}`}>Its story</Anchor>}
        </p>
      )}
    </div>
  )
}

/** What the ledger says that it cost: it is asked until it knows. */
function Cost({ id }: { readonly id: string }) {
  const { data } = useQuery({
    queryKey: ['GET /logs/:id', { params: { id } }, 'cost'],
    queryFn: ({ signal }) => send('GET /logs/:id', { params: { id } }, { signal, live: true }),
    refetchInterval: ({ state }) =>
      (state.data?.stories.some(({ running }) => !running) || state.dataUpdateCount > 40 ? false : 500),
  })
  const story = data?.stories.findLast(({ running }) => !running)
  if (story === undefined) return <Fact label="Cost"><span className="dim">…</span></Fact>
  const { cost_usd, source, input_tokens, output_tokens } = story.row
  return (
    <>
      <Fact label="Tokens in / out">{count(input_tokens)} / {count(output_tokens)}</Fact>
      <Fact label={source === 'estimated' || source === 'mixed' ? 'Cost, estimated' : 'Cost'}>
        <span data-testid="cost">{cost_usd === null ? 'unknown: no price' : money(cost_usd)}</span>
      </Fact>
    </>
  )
}

function Fact({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return <div><dt>{label}</dt><dd>{children}</dd></div>
}

/** JSON with line breaks; what is none stays as it is. */
function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body // an upstream's page, say
  }
}
