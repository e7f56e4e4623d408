import type { RequestDetails } from '../../../../api/logs.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { count, duration, money } from '../../format.ts'
import classes from './timeline.module.css'
import { timelineOf } from './timeline.ts'
import type { Bar, Timeline } from './timeline.ts'

export interface TimelineTableProps {
  readonly story: RequestDetails
  /** Milliseconds since the request began. */
  readonly elapsedMs: number
}

/** What happened when: a table whose last column is drawn to scale, for those who see it. */
export function TimelineTable({ story, elapsedMs }: TimelineTableProps) {
  const timeline = timelineOf(story, elapsedMs)
  return (
    <table className={classes.timeline}>
      <caption className="unseen">What happened, in milliseconds from the start of the request</caption>
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col" className={classes.time}>Began at</th>
          <th scope="col" className={classes.time}>Took</th>
          <th scope="col" className={classes.drawn}>
            <span className="unseen">Drawn to scale</span>
            <Scale timeline={timeline} />
          </th>
        </tr>
      </thead>
      <tbody>
        {timeline.bars.map(bar => (
          <tr key={`${bar.kind} ${bar.attempt ?? bar.from}`}>
            <th scope="row">
              <span className={classes.what}>{bar.label}{bar.open && ' (running)'}</span>
              {bar.attempt !== null && <Attempt attempt={story.attempts[bar.attempt]} open={bar.open} />}
              {bar.kind === 'answer' && <small>from its first byte to its end</small>}
            </th>
            <td className={classes.time} data-label="Began at">{duration(bar.from)}</td>
            <td className={classes.time} data-label="Took">{duration(bar.to - bar.from)}</td>
            <td className={classes.drawn} aria-hidden><Drawn bar={bar} timeline={timeline} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Attempt({ attempt,
  open }: { readonly attempt: RequestDetails['attempts'][number] | undefined; readonly open: boolean }) {
  if (!attempt) return null
  const { upstream, model, outcome, explanation, status, input_tokens, output_tokens, cost_usd } = attempt
  const isGood = outcome === 'ok'
  const tone = isGood ? 'good' : outcome === 'client_gone' ? 'plain' : 'bad'
  const shares = [
    ...input_tokens === null ? [] : [`${count(input_tokens)} tokens in`],
    ...output_tokens === null ? [] : [`${count(output_tokens)} out`],
    ...cost_usd === null ? [] : [money(cost_usd)],
  ]
  return (
    <>
      {upstream !== null
        && <span className={classes.where}>{upstream}{model === null ? '' : `, ${model}`}</span>}
      <span className={classes.outcome}>
        {!open && <StatusBadge tone={tone}>{isGood ? 'Answered' : outcome}</StatusBadge>}
        {status !== null && <span className="dim">HTTP {status}</span>}
      </span>
      {!isGood && !open && <small>{explanation}</small>}
      {shares.length > 0 && <small>{shares.join(', ')}</small>}
    </>
  )
}

function Scale({ timeline: { ticks, span } }: { readonly timeline: Timeline }) {
  return (
    <span className={classes.scale} aria-hidden>
      {ticks.map(tick => (
        <span key={tick} style={{ '--at': tick / span }}
          data-late={tick / span > 0.9 || undefined}>{brief(tick)}</span>
      ))}
    </span>
  )
}

/** `1.50 s` -> `1.5 s`: the lines of a scale are round. */
function brief(ms: number): string {
  return duration(ms).replace(/(\.\d*?)0+(?!\d)/, '$1').replace(/\.(?!\d)/, '')
}

function Drawn({ bar,
  timeline: { ticks, span, firstByteMs } }: { readonly bar: Bar; readonly timeline: Timeline }) {
  return (
    <span className={classes.lane}>
      {ticks.map(tick => <i key={tick} style={{ '--at': tick / span }} />)}
      {firstByteMs !== null
        && <b style={{ '--at': firstByteMs / span }} title={`First byte at ${duration(firstByteMs)}`} />}
      <span className={classes.bar} data-kind={bar.kind} data-failed={bar.failed || undefined}
        data-open={bar.open || undefined}
        style={{ '--at': bar.from / span, '--share': (bar.to - bar.from) / span }} />
    </span>
  )
}
