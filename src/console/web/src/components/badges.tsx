import {
  IconAlertTriangle, IconBox, IconCircleCheck, IconCircleX, IconKey, IconServer, IconTag, IconUser, IconUserCircle, IconUsersGroup,
} from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { visible } from '../format.ts'
import classes from './badges.module.css'
import tones from './tones.module.css'

const ICONS = { key: IconKey, model: IconBox, upstream: IconServer, owner: IconUser, group: IconUsersGroup, user: IconUserCircle, tag: IconTag } as const

export type Kind = keyof typeof ICONS

export const NO_NAME: Readonly<Record<Kind, string>> = {
  key: 'No key', model: 'No model', upstream: 'No upstream', owner: 'No owner', group: 'No group', user: 'No user', tag: 'No tag',
}

/** An icon and the name of a key, model, upstream, owner, group, user or tag. null = the request has no such name. */
export function NameLabel({ kind, name }: { readonly kind: Kind; readonly name: string | null }) {
  const Icon = ICONS[kind]
  return (
    <span className={classes.name} title={name ?? undefined}>
      <Icon size={14} stroke={1.6} aria-hidden />
      <span className="unseen">{kind}</span>
      {name === null ? <span className="dim">{NO_NAME[kind]}</span> : <span>{visible(name)}</span>}
    </span>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'plain' | 'accent'

const TONE_ICONS = {
  good: IconCircleCheck, warn: IconAlertTriangle, bad: IconCircleX, plain: null, accent: null,
} as const

/** A state as one word with an icon, so that users need not see the colour. */
export function StatusBadge({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  const Icon = TONE_ICONS[tone]
  return (
    <span className={`${classes.badge} ${tones[tone]}`}>
      {Icon && <Icon size={13} stroke={2} aria-hidden />}
      {children}
    </span>
  )
}
