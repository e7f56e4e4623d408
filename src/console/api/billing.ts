import { Type } from 'typebox'
import type { Static } from 'typebox'
import { Closed, Day, Figures, Moment, Name, Nullable, Usd, Word } from './shapes.ts'

export const GROUPS = ['key', 'model', 'upstream'] as const

/** Whole UTC days: `from` is taken back to a midnight, `to` on to one. */
export const Billing = Closed({
  from: Moment,
  to: Moment,
  by: Word(GROUPS),
  total: Figures,
  /** The dearest first. */
  groups: Type.Array(Closed({
    name: Nullable(Name),
    figures: Figures,
  })),
  /** For the chart: every day, with what each of the twelve dearest groups cost, and all others together. */
  days: Type.Array(Closed({
    day: Day,
    cost_usd: Usd,
    parts: Type.Array(Closed({ name: Nullable(Name), cost_usd: Usd })),
    others_cost_usd: Usd,
  })),
})
export type Billing = Static<typeof Billing>

export const Budget = Closed({
  key: Name,
  /** null: of the key as a whole; else the glob of models that it is for. */
  model: Nullable(Name),
  per: Word(['day', 'month', 'total']),
  limit_usd: Usd,
  spent_usd: Usd,
  used: Type.Number({ minimum: 0, description: 'Share of the limit; can be above 1' }),
  period_from: Nullable(Moment),
  period_to: Nullable(Moment),
  /** What was spent up to the end of each day of the period; of `total`, the last 30. */
  course: Type.Array(Closed({ day: Day, spent_usd: Usd })),
})
export type Budget = Static<typeof Budget>

export const BudgetQuery = Closed({
  limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 10_000, description: 'So many of the fullest; without it all, as they are configured',
  })),
})

export const Budgets = Closed({
  budgets: Type.Array(Budget),
  total: Type.Integer({ minimum: 0, description: 'How many there are' }),
})
export type Budgets = Static<typeof Budgets>

/** One key's month, to print or to save. */
export const Statement = Closed({
  key: Name,
  month: Type.String({ pattern: '^\\d{4}-\\d{2}$' }),
  from: Moment,
  to: Moment,
  /** Whether the month is over and nothing of it still runs. */
  final: Type.Boolean(),
  made_at: Moment,
  lines: Type.Array(Closed({ model: Nullable(Name), figures: Figures })),
  days: Type.Array(Closed({ day: Day, figures: Figures })),
  total: Figures,
})
export type Statement = Static<typeof Statement>
