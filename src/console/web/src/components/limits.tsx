import type { Limits } from '../../../api/keys.ts'
import { count, money } from '../format.ts'
import classes from './limits.module.css'

type Rates = Omit<Limits, 'models'>

const PERIODS = { day: 'a day', month: 'a month', total: 'in total' } as const

/** What a key is held to, a line each. null: nothing but what holds for every key. */
export function LimitLines({ limits }: { readonly limits: Limits | null }) {
  const { models = {}, ...rates } = limits ?? {}
  const lines = linesOf(rates)
  const byModel = Object.entries(models)
  if (lines.length === 0 && byModel.length === 0) return <span className="dim">none of its own</span>
  return (
    <ul className={classes.lines}>
      {lines.map(line => <li key={line}>{line}</li>)}
      {byModel.map(([glob, own]) => (
        <li key={glob}><code>{glob}</code> <span className="dim">{linesOf(own).join(', ')}</span></li>
      ))}
    </ul>
  )
}

/** @returns limits in words: `60 requests a minute` */
function linesOf({ requests_per_minute, tokens_per_minute, concurrent, budget }: Rates): string[] {
  return [
    ...requests_per_minute === undefined ? [] : [`${counted(requests_per_minute, 'request')} a minute`],
    ...tokens_per_minute === undefined ? [] : [`${counted(tokens_per_minute, 'token')} a minute`],
    ...concurrent === undefined ? [] : [`${count(concurrent)} at a time`],
    ...budget === undefined ? [] : [`${money(budget.usd)} ${PERIODS[budget.per]}`],
  ]
}

function counted(number: number, what: string): string {
  return `${count(number)} ${what}${number === 1 ? '' : 's'}`
}
