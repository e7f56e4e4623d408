import { percent } from '../../format.ts'
import classes from './meter.module.css'

/**
 * A bar that shows a share. It is hidden from screen readers, so the value must also be shown as text.
 * @param share - from 0 to 1; larger values fill the bar
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

/** A share from 0 to 1, as text and as a bar. */
export function Share({ of: share }: { readonly of: number }) {
  return <div className={classes.share}><span>{percent(share)}</span><Meter share={share} /></div>
}
