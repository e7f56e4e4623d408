import { IconAlertTriangle, IconCircleCheck, IconCircleX, IconInfoCircle } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import classes from './notice.module.css'
import tones from '../tones.module.css'

const ICONS = { good: IconCircleCheck, warn: IconAlertTriangle, bad: IconCircleX, accent: IconInfoCircle } as const

/** A message about the whole page. */
export function Notice({ tone, title, children }: {
  readonly tone: keyof typeof ICONS
  readonly title?: string
  readonly children: ReactNode
}) {
  const Icon = ICONS[tone]
  return (
    <div className={`${classes.notice} ${tones[tone]}`}>
      <Icon size={18} stroke={1.8} aria-hidden />
      <div>
        {title !== undefined && <strong>{title}</strong>}
        {children}
      </div>
    </div>
  )
}
