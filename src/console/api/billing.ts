import { Type } from 'typebox'
import type { Static } from 'typebox'
import { StrictObject, Day, Figures, Timestamp, Name, Nullable, Usd, StringEnum } from './shapes.ts'

export const GROUPS = ['key', 'model', 'upstream'] as const

/** Whole UTC days: `from` is taken back to a midnight, `to` on to one. */
export const Billing = StrictObject({
  from: Timestamp,
  to: Timestamp,
  by: StringEnum(GROUPS),
  total: Figures,
  /** The dearest first. */
  groups: Type.Array(StrictObject({
    name: Nullable(Name),
    figures: Figures,
  })),
  /** For the chart: every day, with what each of the twelve dearest groups cost, and all others together. */
  days: Type.Array(StrictObject({
    day: Day,
    cost_usd: Usd,
    parts: Type.Array(StrictObject({ name: Nullable(Name), cost_usd: Usd })),
    others_cost_usd: Usd,
  })),
})
export type Billing = Static<typeof Billing>

export const Budget = StrictObject({
  key: Name,
  /** null: of the key as a whole; else the glob of models that it is for. */
  model: Nullable(Name),
  per: StringEnum(['day', 'month', 'total']),
  limit_usd: Usd,
  spent_usd: Usd,
  used: Type.Number({ minimum: 0, description: 'Share of the limit; can be above 1' }),
  period_from: Nullable(Timestamp),
  period_to: Nullable(Timestamp),
  /** What was spent up to the end of each day of the period; of `total`, the last 30. */
  course: Type.Array(StrictObject({ day: Day, spent_usd: Usd })),
})
export type Budget = Static<typeof Budget>

export const BudgetQuery = StrictObject({
  limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 10_000,
    description: 'Only the n fullest budgets; default: all, in the order of the configuration',
  })),
})

export const Budgets = StrictObject({
  budgets: Type.Array(Budget),
  total: Type.Integer({ minimum: 0, description: 'Number of budgets' }),
})
export type Budgets = Static<typeof Budgets>

/** One key's month, to print or to save. */
export const Statement = StrictObject({
  key: Name,
  month: Type.String({ pattern: '^\\d{4}-\\d{2}$' }),
  from: Timestamp,
  to: Timestamp,
  /** The month is over, and none of its requests still runs. */
  final: Type.Boolean(),
  made_at: Timestamp,
  lines: Type.Array(StrictObject({ model: Nullable(Name), figures: Figures })),
  days: Type.Array(StrictObject({ day: Day, figures: Figures })),
  total: Figures,
})
export type Statement = Static<typeof Statement>
