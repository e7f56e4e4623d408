import { relative, timeUtc } from '../format.ts'
import { useNow } from '../use-now.ts'

export interface TimeProps {
  readonly at: string
  /** The form that is shown; the tooltip has the other. */
  readonly form?: 'absolute' | 'relative'
}

/** A point in time, UTC. */
export function Time({ at, form = 'absolute' }: TimeProps) {
  const now = useNow()
  const absolute = `${timeUtc(at)} UTC`
  const fromNow = relative(at, now)
  return (
    <time dateTime={at} title={form === 'absolute' ? fromNow : absolute} className="numbers">
      {form === 'absolute' ? timeUtc(at) : fromNow}
    </time>
  )
}
