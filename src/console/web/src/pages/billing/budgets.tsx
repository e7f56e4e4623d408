import { useState } from 'react'
import type { ResponseOf } from '../../api.ts'
import { useApiQuery } from '../../ask.ts'
import { StatusBadge, NameLabel } from '../../components/badges.tsx'
import { Meter } from '../../components/meter.tsx'
import { Section } from '../../components/page.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { QueryView, Empty } from '../../components/states.tsx'
import { ShowMore } from '../../components/use-some.tsx'
import { approximate, dayShort, money, moneyShort, percent, relative } from '../../format.ts'
import { useNow } from '../../now.ts'
import classes from './budgets.module.css'

type Budget = ResponseOf<'GET /budgets'>['budgets'][number]

const NEAR = 0.8
/** Budgets that are shown at first. */
const STEP = 60
const COLOURS = { accent: 'var(--chart-1)', warn: 'var(--chart-3)', bad: 'var(--chart-bad)' } as const
const PER = { day: 'a day', month: 'a month', total: 'in all' } as const

/** The fullest budgets, and more of them when they are asked for. */
export function Budgets({ about }: { readonly about?: string }) {
  const [most, setMost] = useState(STEP)
  const answer = useApiQuery('GET /budgets', { query: { limit: most } }, { every: 60_000 })
  return (
    <QueryView of={answer} height={180}>
      {({ budgets, total }) => (
        <Section title="Budgets" about={about}>
          {total === 0
            ? <Empty title="No budgets">A key can be given one, per day, month or in all.</Empty>
            : <BudgetGrid budgets={budgets} />}
          {budgets.length < total && (
            <ShowMore shown={budgets.length} of={total} step={STEP} show={() => { setMost(most + STEP) }} />
          )}
        </Section>
      )}
    </QueryView>
  )
}

/** What of each is used, its course, and when it begins anew. */
function BudgetGrid({ budgets }: { readonly budgets: readonly Budget[] }) {
  const now = useNow(60_000)
  return (
    <ul className={classes.grid}>
      {budgets.map(budget => (
        <li key={`${budget.key} ${budget.model} ${budget.per}`} className={classes.budget}>
          <BudgetCard budget={budget} now={now} />
        </li>
      ))}
    </ul>
  )
}

function BudgetCard({ budget, now }: { readonly budget: Budget; readonly now: number }) {
  const tone = budget.used >= 1 ? 'bad' : budget.used >= NEAR ? 'warn' : 'accent'
  return (
    <>
      <div className={classes.head}>
        <NameLabel kind="key" name={budget.key} />
        {tone === 'bad'
          ? <StatusBadge tone="bad">used up</StatusBadge>
          : tone === 'warn' ? <StatusBadge tone="warn">near its end</StatusBadge> : null}
      </div>
      <div className={classes.amounts}>
        <strong title={money(budget.spent_usd)}>{moneyShort(budget.spent_usd)}</strong>
        <span>of {money(budget.limit_usd)} {PER[budget.per]}</span>
      </div>
      <Meter share={budget.used} tone={tone} />
      {budget.course.length > 1 && (
        <Sparkline values={budget.course.map(({ spent_usd }) => approximate(spent_usd))}
          colour={COLOURS[tone]} />
      )}
      <div className={classes.foot}>
        <span>
          {percent(budget.used)} used{budget.model !== null && <>, for <code>{budget.model}</code></>}
        </span>
        <span>{budget.period_to === null
          ? 'does not renew'
          : `renews ${dayShort(budget.period_to, now)}, ${relative(budget.period_to, now)}`}</span>
      </div>
    </>
  )
}
