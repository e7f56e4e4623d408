import { IconDoorExit, IconLoader } from '@tabler/icons-react'
import { END_WORDS } from '../ends.ts'
import type { End } from '../ends.ts'
import { Mark } from './badges.tsx'
import type { Tone } from './badges.tsx'

const TONES: Readonly<Record<End, Tone>> = {
  complete: 'good',
  client_gone: 'plain',
  upstream_cut: 'bad',
  timeout: 'bad',
  refused: 'warn',
  error: 'bad',
  interrupted: 'bad',
}

export interface EndMarkProps {
  readonly end: End
  /** The HTTP status, where it is to stand there too; null = none was sent. */
  readonly status?: number | null
  readonly running?: boolean
}

/** How a request ended, as a sign and a word. */
export function EndMark({ end, status = null, running = false }: EndMarkProps) {
  if (running) return <Mark tone="accent"><IconLoader size={13} stroke={2} aria-hidden />Running</Mark>
  return (
    <Mark tone={TONES[end]}>
      {end === 'client_gone' && <IconDoorExit size={13} stroke={2} aria-hidden />}
      {status !== null && `${status} `}{END_WORDS[end]}
    </Mark>
  )
}
