import { relative, timeUtc } from '../format.ts'
import { useNow } from '../now.ts'

export interface TimeProps {
  readonly at: string
  /** Which of both is read at once; the other is in the tooltip. */
  readonly form?: 'absolute' | 'relative'
}

/** A moment, in UTC. */
export function Time({ at, form = 'absolute' }: TimeProps) {
  const now = useNow()
  const absolute = `${timeUtc(at)} UTC`
  const away = relative(at, now)
  return (
    <time dateTime={at} title={form === 'absolute' ? away : absolute} className="numbers">
      {form === 'absolute' ? timeUtc(at) : away}
    </time>
  )
}
