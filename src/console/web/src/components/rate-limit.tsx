import type { ReactNode } from 'react'
import { count, duration } from '../format.ts'
import { Meter } from './charts/meter.tsx'
import classes from './rate-limit.module.css'

/** Shows limits side by side. */
export function LimitGrid({ children }: { readonly children: ReactNode }) {
  return <dl className={classes.grid}>{children}</dl>
}

export interface RateLimitProps {
  readonly label: string
  /** `remaining`: null = not known yet. */
  readonly rate: { readonly limit: number, readonly remaining: number | null, readonly reset_ms: number | null }
}

/** Shows a limit per minute, and how much of it remains. */
export function RateLimit({ label, rate: { limit, remaining, reset_ms } }: RateLimitProps) {
  if (remaining === null) {
    return (
      <div className={classes.limit}>
        <dt>{label}</dt>
        <dd className={classes.value}><strong>{count(limit)}</strong><span>no requests yet</span></dd>
      </div>
    )
  }
  const left = limit === 0 ? 0 : remaining / limit
  return (
    <div className={classes.limit}>
      <dt>{label}</dt>
      <dd className={classes.value}>
        <strong>{count(remaining)}</strong><span>of {count(limit)} left</span>
      </dd>
      <dd><Meter share={left} tone={left < 0.1 ? 'bad' : left < 0.25 ? 'warn' : 'accent'} /></dd>
      <dd><small>{reset_ms !== null && reset_ms > 0 ? `fully refilled in ${duration(reset_ms)}` : 'none used'}</small></dd>
    </div>
  )
}

/** Shows a limit on concurrent requests. @param running - number of running requests; absent = not known */
export function ConcurrencyLimit({ limit, running }: { readonly limit: number, readonly running?: number }) {
  return (
    <div className={classes.limit}>
      <dt>Concurrent requests</dt>
      <dd className={classes.value}>
        {running === undefined
          ? <><strong>{count(limit)}</strong><span>at most</span></>
          : <><strong>{count(running)}</strong><span>of {count(limit)} running</span></>}
      </dd>
      {running !== undefined && <dd><Meter share={limit === 0 ? 1 : running / limit} tone={running >= limit ? 'bad' : 'accent'} /></dd>}
    </div>
  )
}
