import type { KeyOwners } from '../../auth/key-owners.ts'
import type { QueryOf } from '../api/api.ts'
import type { Statement } from '../api/billing.ts'
import { DAY, type Period } from './period.ts'
import { permittedDimensions } from './permitted-dimensions.ts'
import { ReportError } from './report-error.ts'
import { sortByCost, figures, groupSums, sumTotals, type Totals } from './sums.ts'
import type { View } from './view.ts'

export function statement(view: View, query: QueryOf<'GET /statement'>, own: string | null, owners: KeyOwners): Statement {
  const { model: _model, upstream: _upstream, ...dimensions } = permittedDimensions(query, own)
  const { key } = dimensions
  const { owner = null, user = null, tag = null } = query
  // The own key of a key holder is implied.
  const named = own !== null && (user !== null || tag !== null) ? null : key ?? null
  if ([named, owner, user, tag].filter(each => each !== null).length !== 1) {
    throw new ReportError('bad_request', 'Select a key, an owner, a user or a tag: a statement covers one of them.', 'key')
  }
  const month = monthOf(query.month)
  const sums = groupSums(view, month, dimensions, ['key', 'model', { slice: DAY }])
    .filter(({ names: [name] }) => owner === null || owners.get(String(name)) === owner)
  const by = <N extends string | number | null>(column: number): [N, Totals][] => {
    const groups = Map.groupBy(sums, ({ names }) => names[column] as N)
    return sortByCost(new Map([...groups].map(([name, group]) => [name, sumTotals(group.map(({ totals }) => totals))])))
  }
  const keys = by<string | null>(0)
  const days = by<number>(2).toSorted(([a], [b]) => a - b)
  const asked = typeof key === 'string' ? [key]
    : owner === null ? keys.map(([name]) => name)
    : [...owners].flatMap(([name, of]) => (of === owner ? [name] : []))
  return {
    key: named, owner, user, tag, month: query.month,
    from: new Date(month.from).toISOString(), to: new Date(month.to).toISOString(),
    final: month.to <= view.now && !asked.some(name => name !== null && view.mayChange(name, month.from, month.to)),
    made_at: new Date(view.now).toISOString(),
    lines: by<string | null>(1).map(([model, totals]) => ({ model, figures: figures(totals) })),
    keys: keys.map(([name, totals]) => ({ key: name, figures: figures(totals) })),
    days: days.map(([day, totals]) => ({ day: new Date(day * DAY).toISOString().slice(0, 10), figures: figures(totals) })),
    total: figures(sumTotals(sums.map(({ totals }) => totals))),
  }
}

function monthOf(text: string): Period {
  const [year = NaN, month = NaN] = text.split('-').map(Number)
  const from = Date.UTC(year, month - 1)
  if (!/^\d{4}-\d\d$/.test(text) || month < 1 || month > 12) throw new ReportError('bad_request', 'Not a valid month.', 'month')
  return { from, to: Date.UTC(year, month) }
}
