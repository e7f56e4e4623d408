import type { Statement } from '../api/billing.ts'
import type { QueryOf } from '../api/table.ts'
import { DAY } from './period.ts'
import type { Period } from './period.ts'
import { permittedDimensions } from './permitted-dimensions.ts'
import { ReportError } from './report-error.ts'
import { sortByCost, figures, sumsBy, sumTotals } from './sums.ts'
import type { Totals } from './sums.ts'
import type { View } from './view.ts'

export function statement(view: View, query: QueryOf<'GET /statement'>, own: string | null): Statement {
  const { key } = permittedDimensions(query, own)
  if (typeof key !== 'string') {
    throw new ReportError('bad_request', 'Select a key: a statement covers one key.', 'key')
  }
  const month = monthOf(query.month)
  const dimensions = { key }
  const lines = sortByCost(sumsBy(view, month, dimensions, 'model') as Map<string | null, Totals>)
  const days = [...sumsBy(view, month, dimensions, { slice: DAY })]
    .toSorted(([a], [b]) => Number(a) - Number(b))
  return {
    key,
    month: query.month,
    from: new Date(month.from).toISOString(),
    to: new Date(month.to).toISOString(),
    final: month.to <= view.now && !view.mayChange(key, month.from, month.to),
    made_at: new Date(view.now).toISOString(),
    lines: lines.map(([model, sums]) => ({ model, figures: figures(sums) })),
    days: days.map(([day, sums]) => ({
      day: new Date(Number(day) * DAY).toISOString().slice(0, 10), figures: figures(sums),
    })),
    total: figures(sumTotals(lines.map(([, sums]) => sums))),
  }
}

function monthOf(text: string): Period {
  const [year = NaN, month = NaN] = text.split('-').map(Number)
  const from = Date.UTC(year, month - 1)
  if (!/^\d{4}-\d\d$/.test(text) || month < 1 || month > 12) {
    throw new ReportError('bad_request', 'Not a valid month.', 'month')
  }
  return { from, to: Date.UTC(year, month) }
}
