import type { Limits } from '../../../api/keys.ts'
import { PER_PERIOD, counted, money } from '../format.ts'
import classes from './limits.module.css'

type Rates = Omit<Limits, 'models'>

export interface LimitLinesProps {
  readonly limits: Limits | null
  /** Text to show if there are no limits. */
  readonly none?: string
}

/** Shows limits, one in each line. */
export function LimitLines({ limits, none = 'none' }: LimitLinesProps) {
  const { models = {}, ...rates } = limits ?? {}
  const lines = linesOf(rates)
  const byModel = Object.entries(models)
  if (lines.length === 0 && byModel.length === 0) return <span className="dim">{none}</span>
  return (
    <ul className={classes.lines}>
      {lines.map(line => <li key={line}>{line}</li>)}
      {byModel.map(([glob, own]) => (
        <li key={glob}><code>{glob}</code> <span className="dim">{linesOf(own).join(', ')}</span></li>
      ))}
    </ul>
  )
}

/** @returns texts such as `60 requests per minute` */
function linesOf({ requests_per_minute, tokens_per_minute, concurrent, budget }: Rates): string[] {
  return [
    ...requests_per_minute === undefined ? [] : [`${counted(requests_per_minute, 'request')} per minute`],
    ...tokens_per_minute === undefined ? [] : [`${counted(tokens_per_minute, 'token')} per minute`],
    ...concurrent === undefined ? [] : [counted(concurrent, 'concurrent request')],
    ...budget === undefined ? [] : [`${money(budget.usd)} ${PER_PERIOD[budget.per]}`],
  ]
}
