import { relative, timeExact, timeLocal, timeUtc } from '../format.ts'
import { useNow } from '../use-now.ts'

export interface TimeProps {
  readonly at: string
  /** The form that is shown. The tooltip has both, local time and milliseconds. */
  readonly form?: 'absolute' | 'relative'
}

/** A point in time, UTC. */
export function Time({ at, form = 'absolute' }: TimeProps) {
  const now = useNow()
  const fromNow = relative(at, now)
  const title = `${timeExact(at)} UTC\n${timeLocal(at)}\n${fromNow}`
  return (
    <time dateTime={at} title={title} className="numbers">
      {form === 'absolute' ? timeUtc(at) : fromNow}
    </time>
  )
}
