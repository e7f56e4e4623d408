import { useState } from 'react'
import type { ResponseOf } from '../../api.ts'
import { useApiQuery } from '../../api-hooks.ts'
import { StatusBadge, NameLabel } from '../../components/badges.tsx'
import { Meter } from '../../components/charts/meter.tsx'
import { Section } from '../../components/page/page.tsx'
import { Sparkline } from '../../components/charts/sparkline.tsx'
import { QueryView, Empty } from '../../components/page/states.tsx'
import { ShowMore } from '../../components/page/show-more.tsx'
import { PER_PERIOD, approximate, dayShort, money, moneyShort, percent, relative } from '../../format.ts'
import { useNow } from '../../use-now.ts'
import classes from './budgets.module.css'

type Budget = ResponseOf<'GET /budgets'>['budgets'][number]

/** Share of a budget from which on it is marked as near its limit. */
const NEAR = 0.8
/** Number of budgets that are shown at first. */
const STEP = 60
const COLOURS = { accent: 'var(--chart-1)', warn: 'var(--chart-3)', bad: 'var(--chart-bad)' } as const

/** The budgets, those with the highest used share first. */
export function Budgets({ about }: { readonly about?: string }) {
  const [limit, setLimit] = useState(STEP)
  const query = useApiQuery('GET /budgets', { query: { limit } }, { every: 60_000 })
  return (
    <QueryView of={query} height={180}>
      {({ budgets, total }) => (
        <Section title="Budgets" about={about}>
          {total === 0
            ? <Empty title="No budgets">A key or a group can have a budget per day, per month or in total.</Empty>
            : <BudgetGrid budgets={budgets} />}
          {budgets.length < total && (
            <ShowMore shown={budgets.length} of={total} step={STEP} show={() => { setLimit(limit + STEP) }} />
          )}
        </Section>
      )}
    </QueryView>
  )
}

/** Shows each budget: how much is used, the spend over time, and when the budget resets. */
function BudgetGrid({ budgets }: { readonly budgets: readonly Budget[] }) {
  const now = useNow(60_000)
  return (
    <ul className={classes.grid}>
      {budgets.map(budget => (
        <li key={`${budget.group === null ? 'key' : 'group'} ${holderOf(budget)} ${budget.model} ${budget.per}`} className={classes.budget}>
          <BudgetCard budget={budget} now={now} />
        </li>
      ))}
    </ul>
  )
}

/** The name of the key or group that has the budget. */
function holderOf({ key, group }: Budget): string | null {
  return group ?? key
}

function BudgetCard({ budget, now }: { readonly budget: Budget; readonly now: number }) {
  const tone = budget.used >= 1 ? 'bad' : budget.used >= NEAR ? 'warn' : 'accent'
  return (
    <>
      <div className={classes.head}>
        <NameLabel kind={budget.group === null ? 'key' : 'group'} name={holderOf(budget)} />
        {tone === 'bad'
          ? <StatusBadge tone="bad">Used up</StatusBadge>
          : tone === 'warn' ? <StatusBadge tone="warn">Near limit</StatusBadge> : null}
      </div>
      <div className={classes.amounts}>
        <strong title={money(budget.spent_usd)}>{moneyShort(budget.spent_usd)}</strong>
        <span>of {money(budget.limit_usd)} {PER_PERIOD[budget.per]}</span>
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
          ? 'does not reset'
          : `resets ${dayShort(budget.period_to, now)}, ${relative(budget.period_to, now)}`}</span>
      </div>
    </>
  )
}
