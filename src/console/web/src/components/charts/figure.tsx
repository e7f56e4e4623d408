import { IconArrowDownRight, IconArrowUpRight } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { percent } from '../../format.ts'
import classes from './figure.module.css'

/** Shows figures side by side. @param columns - number of figures in a row */
export function Figures({ columns, children }: { readonly columns: 4 | 6; readonly children: ReactNode }) {
  return <dl className={classes.figures} style={{
    '--wide': columns, '--middle': columns / 2,
  }}>{children}</dl>
}

export interface FigureProps {
  readonly label: string
  readonly value: ReactNode
  /** The exact value, for `value` that is shortened. */
  readonly exact?: string
  /** The previous period: its text, and the numbers of both periods, from which the change is computed. */
  readonly before?: {
    readonly text: string
    readonly now: number | null
    readonly past: number | null
    /** true if the numbers are shares of 1: the change is then shown in percentage points. */
    readonly areShares?: boolean
  }
  /** Whether an increase is good or bad. `neither` is for traffic and spend. */
  readonly rise?: 'good' | 'bad' | 'neither'
  /** Text below the value. */
  readonly note?: ReactNode
}

/** One figure, compared with the previous period. */
export function Figure({ label, value, exact, before, rise = 'neither', note }: FigureProps) {
  return (
    <div className={classes.figure}>
      <dt>{label}</dt>
      <dd className={classes.value} title={exact}>{value}</dd>
      {(before !== undefined || note !== undefined) && (
        <dd className={classes.before}>
          {before && <Change {...before} rise={rise} />}
          {before && <span>{before.text}</span>}
          {note}
        </dd>
      )}
    </div>
  )
}

interface ChangeProps {
  readonly now: number | null
  readonly past: number | null
  readonly areShares?: boolean
  readonly rise: 'good' | 'bad' | 'neither'
}

function Change({ now, past, areShares = false, rise }: ChangeProps) {
  if (now === null || past === null || now === past) return null
  if (past === 0 && !areShares) return null
  const isRise = now > past
  const isWorse = rise !== 'neither' && (rise === 'bad') === isRise
  const Arrow = isRise ? IconArrowUpRight : IconArrowDownRight
  const tone = rise === 'neither' ? '' : isWorse ? classes.worse : classes.better
  return (
    <span className={`${classes.change} ${tone}`}>
      <Arrow size={13} stroke={2.2} aria-hidden />
      <span className="unseen">{isRise ? 'up by' : 'down by'}</span>
      {areShares ? points(Math.abs(now - past)) : relative((now - past) / past)}
    </span>
  )
}

function relative(share: number): string {
  return share >= 10 ? `${Math.round(share + 1)}×` : percent(Math.abs(share))
}

/** The difference between two percentages, in percentage points. */
function points(share: number) {
  return (
    <>
      {percent(share).replace(/\s*%$/, '')}
      <span aria-hidden>{'\u202f'}pt</span><span className="unseen"> points</span>
    </>
  )
}
