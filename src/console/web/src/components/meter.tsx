import { percent } from '../format.ts'
import classes from './meter.module.css'

/**
 * How much of a whole. What it means stands beside it in words.
 * @param share - of 1; more is drawn as full
 */
export function Meter(
  { share, tone = 'accent' }: { readonly share: number; readonly tone?: 'accent' | 'warn' | 'bad' },
) {
  return (
    <div className={`${classes.meter} ${classes[tone]}`} aria-hidden>
      <span style={{ '--share': `${Math.min(1, Math.max(0, share)) * 100}%` }} />
    </div>
  )
}

/** A share of 1, drawn and written. */
export function Share({ of: share }: { readonly of: number }) {
  return <div className={classes.share}><span>{percent(share)}</span><Meter share={share} /></div>
}
