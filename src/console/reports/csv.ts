import { csvHeader, csvLine, ROW_FIELDS, type Field } from '../../ledger/read/export-fields.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import type { Billing } from '../api/billing.ts'

const CHUNK = 65_536

/** A CSV file. `pieces` are the parts of its text. */
export interface CsvFile {
  /** Name of the file without `.csv`, such as `billing-2026-11`. */
  readonly name: string
  readonly pieces: AsyncIterable<string>
}

const HIDDEN_FROM_KEY_HOLDERS: ReadonlySet<string> = new Set(['upstream', 'upstream_model', 'attempts', 'route', 'trace_id'])

/** The columns of `gateway usage --csv`, without columns that the user must not see. */
export function rowFields(own: string | null): readonly Field<LedgerRow>[] {
  return own === null ? ROW_FIELDS : ROW_FIELDS.filter(({ name }) => !HIDDEN_FROM_KEY_HOLDERS.has(name))
}

type Group = Billing['groups'][number]

const FIGURE_COLUMNS = [
  'requests', 'errors', 'input_tokens', 'cached_input_tokens', 'cache_write_tokens', 'output_tokens', 'reasoning_tokens', 'cost_usd',
  'estimated_requests', 'estimated_cost_usd', 'unpriced_requests',
] as const

/** @param by dimensions as in the query @param period name of the period, which each row contains */
export function billingFields(by: Billing['by'], period: string): readonly Field<Group>[] {
  const figure = (name: keyof Billing['total']): Field<Group> => ({ name, value: ({ figures }) => figures[name] })
  return [
    ...by.split(',').map((name, n): Field<Group> => ({ name, value: ({ names }) => names[n] ?? null })),
    ...FIGURE_COLUMNS.map(figure),
    { name: 'period', value: () => period },
  ]
}

/** Yields the header and a line for each item, in pieces of about 64 kB. Reads the items one by one. */
export async function* csv<T>(fields: readonly Field<T>[], items: AsyncIterable<T> | Iterable<T>): AsyncGenerator<string> {
  let chunk = csvHeader(fields)
  for await (const item of items) {
    chunk += csvLine(fields, item)
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = ''
  }
  yield chunk
}
