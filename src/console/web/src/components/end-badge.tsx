import { IconDoorExit, IconLoader } from '@tabler/icons-react'
import { END_LABELS, type End } from '../end-labels.ts'
import { StatusBadge, type Tone } from './badges.tsx'

const TONES: Readonly<Record<End, Tone>> = {
  complete: 'good',
  client_gone: 'plain',
  upstream_cut: 'bad',
  timeout: 'bad',
  refused: 'warn',
  error: 'bad',
  interrupted: 'bad',
}

export interface EndBadgeProps {
  readonly end: End
  /** HTTP status to show too; null = no status was sent. */
  readonly status?: number | null
  readonly running?: boolean
}

/** The outcome of a request. */
export function EndBadge({ end, status = null, running = false }: EndBadgeProps) {
  if (running) {
    return <StatusBadge tone="accent"><IconLoader size={13} stroke={2} aria-hidden />Running</StatusBadge>
  }
  return (
    <StatusBadge tone={TONES[end]}>
      {end === 'client_gone' && <IconDoorExit size={13} stroke={2} aria-hidden />}
      {status !== null && `${status} `}{END_LABELS[end]}
    </StatusBadge>
  )
}
