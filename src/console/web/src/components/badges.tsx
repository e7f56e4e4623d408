import {
  IconAlertTriangle, IconBox, IconCircleCheck, IconCircleX, IconKey, IconServer,
} from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { visible } from '../format.ts'
import classes from './badges.module.css'
import tones from './tones.module.css'

const ICONS = { key: IconKey, model: IconBox, upstream: IconServer } as const
const NOBODY = { key: 'without a key', model: 'without a model', upstream: 'no upstream' } as const

export type Kind = keyof typeof ICONS

/** The name of a key, model or upstream with the sign of its kind. null: there was none. */
export function NameLabel({ kind, name }: { readonly kind: Kind; readonly name: string | null }) {
  const Icon = ICONS[kind]
  return (
    <span className={classes.name} title={name ?? undefined}>
      <Icon size={14} stroke={1.6} aria-hidden />
      <span className="unseen">{kind}</span>
      {name === null ? <span className="dim">{NOBODY[kind]}</span> : <span>{visible(name)}</span>}
    </span>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'plain' | 'accent'

const SIGNS = {
  good: IconCircleCheck, warn: IconAlertTriangle, bad: IconCircleX, plain: null, accent: null,
} as const

/** A state in a word. Its sign says what the colour says. */
export function StatusBadge({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  const Sign = SIGNS[tone]
  return (
    <span className={`${classes.mark} ${tones[tone]}`}>
      {Sign && <Sign size={13} stroke={2} aria-hidden />}
      {children}
    </span>
  )
}
