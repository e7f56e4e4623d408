import { relative, timeExact, timeLocal, timeUtc } from '../format.ts'
import { useNow } from '../use-now.ts'

export interface TimeProps {
  readonly at: string
  /** The form of the text. The tooltip has both forms, and the local time with milliseconds. */
  readonly form?: 'absolute' | 'relative'
}

/** Shows a point in time, in UTC. */
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
