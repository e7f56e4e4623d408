import { Type, type Static } from 'typebox'
import { Conditions, Count, KnownCost, StrictObject, Day, Figures, Timestamp, Name, Nullable, Usd, StringEnum } from './shapes.ts'

/** What requests can be grouped by. The ledger has sums by the first four; sums by the others are computed from the rows. */
const DIMENSIONS = ['key', 'model', 'upstream', 'owner', 'group', 'protocol', 'status', 'user'] as const
export type BillingDimension = (typeof DIMENSIONS)[number] | `tag:${string}`

const ONE = `(${DIMENSIONS.join('|')}|tag:[a-z][a-z0-9_-]{0,63})`

/** Conditions on the end user and on tags. */
const Attributed = {
  user: Type.Optional(Type.String({ maxLength: 256, description: 'Requests of this end user' })),
  tag: Type.Optional(Type.String({ maxLength: 512, description: 'Requests with this tag: project=alpha' })),
}

const SORTS = [
  'cost', 'requests', 'errors', 'input_tokens', 'cached_input_tokens', 'output_tokens',
  'estimated_cost', 'unpriced_requests', 'name',
] as const

/** The query of the table, and of the table's CSV file. */
export const GroupQuery = {
  ...Conditions,
  owner: Type.Optional(Type.String({ maxLength: 128, description: 'Requests with keys of this owner' })),
  by: Type.Optional(Type.String({
    pattern: `^${ONE}(,${ONE}){0,2}$`,
    description: `One to three of ${DIMENSIONS.join(', ')} and tag:NAME, separated by commas; default: key`,
  })),
  ...Attributed,
}

export const PageQuery = {
  search: Type.Optional(Type.String({ maxLength: 256, description: 'Only groups with this text in a name' })),
  sort: Type.Optional(StringEnum(SORTS, 'Default: cost')),
  order: Type.Optional(StringEnum(['desc', 'asc'], 'Default: desc; of name: asc')),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000_000 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, description: 'Groups in the response; default: all' })),
}

const GroupNames = {
  /** The value of the first dimension. */
  name: Nullable(Name),
  names: Type.Array(Nullable(Name), { description: 'In the order of `by`; null = the requests have none' }),
}

/** Billing for whole UTC days: `from` is moved back to 00:00, and `to` is moved forward to 00:00. */
export const Billing = StrictObject({
  from: Timestamp, to: Timestamp,
  by: Type.String({ description: 'As in the query' }),
  /** Figures of all requests, not only of the groups in this response. */
  total: Figures,
  groups: Type.Array(StrictObject({ ...GroupNames, figures: Figures })),
  groups_total: Type.Integer({ minimum: 0, description: 'Number of groups with the searched text' }),
  missing_requests: Type.Integer({
    minimum: 0,
    description: 'Requests that are not counted, because their rows have expired: days before the ledger had sums by group, protocol and status need them',
  }),
  /** The twelve groups with the highest cost, in descending order. `days` has the cost of these groups. */
  charted: Type.Array(StrictObject({ ...GroupNames, cost_usd: KnownCost })),
  /** Every day, with the cost of each charted group, and the cost of all other groups together. */
  days: Type.Array(StrictObject({
    day: Day, cost_usd: KnownCost, unpriced_requests: Count,
    parts: Type.Array(StrictObject({ ...GroupNames, cost_usd: Usd })),
    others_cost_usd: Usd,
  })),
})
export type Billing = Static<typeof Billing>

export const Budget = StrictObject({
  /** Name of the key; null = the budget of a group. */
  key: Nullable(Name),
  group: Nullable(Name),
  /** A glob of models; null = the budget is for all models of the key or group. */
  model: Nullable(Name),
  per: StringEnum(['day', 'month', 'total']),
  limit_usd: Usd, spent_usd: Usd,
  used: Type.Number({ minimum: 0, description: 'Share of the limit; can be above 1' }),
  period_from: Nullable(Timestamp), period_to: Nullable(Timestamp),
  /** The total cost at the end of each day of the period. For `total`, the last 30 days. */
  course: Type.Array(StrictObject({ day: Day, spent_usd: Usd })),
})
export type Budget = Static<typeof Budget>

export const BudgetQuery = StrictObject({
  limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 10_000,
    description: 'Only the n fullest budgets; default: all, in the order of the configuration',
  })),
})

export const Budgets = StrictObject({ budgets: Type.Array(Budget), total: Type.Integer({ minimum: 0, description: 'Number of budgets' }) })
export type Budgets = Static<typeof Budgets>

export const StatementQuery = StrictObject({
  key: Type.Optional(Name), owner: Type.Optional(Name), ...Attributed, month: Type.String({ pattern: '^\\d{4}-(0[1-9]|1[0-2])$' }),
})

/** The statement of one key, of all keys of an owner, of an end user, or of a tag. The others are null. */
export const Statement = StrictObject({
  key: Nullable(Name),
  owner: Nullable(Name),
  user: Nullable(Name),
  tag: Nullable(Type.String({ description: 'project=alpha' })),
  month: Type.String({ pattern: '^\\d{4}-\\d{2}$' }),
  from: Timestamp, to: Timestamp,
  /** true if the month is over, and none of its requests is still running. */
  final: Type.Boolean(),
  made_at: Timestamp,
  lines: Type.Array(StrictObject({ model: Nullable(Name), figures: Figures })),
  keys: Type.Array(StrictObject({ key: Nullable(Name), figures: Figures }), { description: 'Those that were used' }),
  days: Type.Array(StrictObject({ day: Day, figures: Figures })),
  total: Figures,
})
export type Statement = Static<typeof Statement>
