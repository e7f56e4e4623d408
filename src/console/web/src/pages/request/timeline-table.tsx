import type { RequestDetails } from '../../../../api/logs.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { counted, duration, money } from '../../format.ts'
import classes from './timeline.module.css'
import { timelineOf, type Bar, type Timeline } from './timeline.ts'

export interface TimelineTableProps {
  readonly story: RequestDetails
  /** ms since the start of the request. */
  readonly elapsedMs: number
}

/** The steps of a request as a table. Its last column shows a bar to scale for each step. */
export function TimelineTable({ story, elapsedMs }: TimelineTableProps) {
  const timeline = timelineOf(story, elapsedMs)
  return (
    <table className={classes.timeline}>
      <caption className="unseen">Timeline from the start of the request</caption>
      <thead>
        <tr>
          <th scope="col">Step</th>
          <th scope="col" className={classes.time}>Start</th>
          <th scope="col" className={classes.time}>Duration</th>
          <th scope="col" className={classes.drawn}>
            <span className="unseen">Bar to scale</span>
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
              {bar.kind === 'response' && <small>from first to last byte</small>}
            </th>
            <td className={classes.time} data-label="Start">{duration(bar.from)}</td>
            <td className={classes.time} data-label="Duration">{duration(bar.to - bar.from)}</td>
            <td className={classes.drawn} aria-hidden><BarCell bar={bar} timeline={timeline} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface AttemptProps {
  readonly attempt: RequestDetails['attempts'][number] | undefined
  readonly open: boolean
}

function Attempt({ attempt, open }: AttemptProps) {
  if (!attempt) return null
  const { upstream, model, translated, dropped, outcome, explanation, status, input_tokens, output_tokens, cost_usd } = attempt
  const succeeded = outcome === 'ok'
  const tone = succeeded ? 'good' : outcome === 'client_gone' || outcome === 'hedge_lost' ? 'plain' : 'bad'
  const shares = [
    ...input_tokens === null ? [] : [counted(input_tokens, 'input token')],
    ...output_tokens === null ? [] : [counted(output_tokens, 'output token')],
    ...cost_usd === null ? [] : [money(cost_usd)],
  ]
  return (
    <>
      {upstream !== null
        && <span className={classes.where}>{upstream}{model === null ? '' : `, ${model}`}</span>}
      <span className={classes.outcome}>
        {!open && <StatusBadge tone={tone}>{succeeded ? 'OK' : outcome}</StatusBadge>}
        {status !== null && <span className="dim">HTTP {status}</span>}
      </span>
      {!succeeded && !open && <small>{explanation}</small>}
      {translated !== null && <small>translated to {translated.split('->')[1]}</small>}
      {dropped.length > 0 && <small>without {dropped.join(', ')}</small>}
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

/** Formats a duration without trailing zeros: `1.50 s` -> `1.5 s`. */
function brief(ms: number): string {
  return duration(ms).replace(/(\.\d*?)0+(?!\d)/, '$1').replace(/\.(?!\d)/, '')
}

function BarCell(
  { bar, timeline: { ticks, span, firstByteMs } }: { readonly bar: Bar; readonly timeline: Timeline },
) {
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
