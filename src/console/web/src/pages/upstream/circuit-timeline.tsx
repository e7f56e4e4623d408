import type { UpstreamDetails } from '../../../../api/upstream.ts'
import { StatusBadge } from '../../components/badges.tsx'
import { Section } from '../../components/page/page.tsx'
import { duration, minuteUtc } from '../../format.ts'
import classes from './circuit-timeline.module.css'
import { lanesOf } from './spans.ts'

export interface CircuitTimelineProps extends Pick<UpstreamDetails, 'changes'> {
  /** Bounds of the timeline, ISO 8601. */
  readonly range: { readonly from: string; readonly to: string }
}

/** When each circuit was open: as bars to scale, and the total as text. Shows nothing if no circuit was open. */
export function CircuitTimeline({ changes, range }: CircuitTimelineProps) {
  const [from, to] = [Date.parse(range.from), Date.parse(range.to)]
  const lanes = lanesOf(changes, from, to)
  if (lanes.length === 0) return null
  const share = (ms: number) => ms / (to - from)
  return (
    <Section title="Open circuits over time" about={`${minuteUtc(range.from)} – ${minuteUtc(range.to)} UTC`}>
      <ul className={classes.lanes}>
        {lanes.map(({ id, model, worker, isOpen, open }) => (
          <li key={id}>
            <span className={classes.name}>
              {model ?? 'all models'}{worker > 0 && `, worker ${worker}`}
              {isOpen && <span><StatusBadge tone="bad">Still open</StatusBadge></span>}
              <small>open for {duration(open.reduce((total, span) => total + span.to - span.from, 0))}</small>
            </span>
            <span className={`${classes.lane} ${isOpen ? classes.open : ''}`} aria-hidden>
              {open.map(span => (
                <i key={span.from} style={{ '--at': share(span.from - from), '--share': share(span.to - span.from) }}
                  title={`${minuteUtc(span.from)} – ${minuteUtc(span.to)} UTC`} />
              ))}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
