import { csvHeader, csvLine, ROW_FIELDS } from '../../ledger/read/export-fields.ts'
import type { Field } from '../../ledger/read/export-fields.ts'
import type { LedgerRow } from '../../ledger/row.ts'
import type { Billing } from '../api/billing.ts'

const CHUNK = 65_536

/** A table to download. */
export interface CsvFile {
  /** Without `.csv`: `billing-2026-11` */
  readonly name: string
  readonly pieces: AsyncIterable<string>
}

/** Columns that key holders do not get. */
const HIDDEN_FROM_KEY_HOLDERS: ReadonlySet<string> = new Set(['upstream', 'upstream_model', 'attempts', 'route', 'trace_id'])

/** The columns of `gateway usage --csv` that the user may see. */
export function rowFields(own: string | null): readonly Field<LedgerRow>[] {
  return own === null ? ROW_FIELDS : ROW_FIELDS.filter(({ name }) => !HIDDEN_FROM_KEY_HOLDERS.has(name))
}

type Group = Billing['groups'][number]

/**
 * @param by as in the query
 * @param period its name, for each row
 */
export function billingFields(by: Billing['by'], period: string): readonly Field<Group>[] {
  const figure = (name: keyof Billing['total']): Field<Group> => ({ name, value: ({ figures }) => figures[name] })
  return [
    ...by.split(',').map((name, n): Field<Group> => ({ name, value: ({ names }) => names[n] ?? null })),
    figure('requests'),
    figure('errors'),
    figure('input_tokens'),
    figure('cached_input_tokens'),
    figure('cache_write_tokens'),
    figure('output_tokens'),
    figure('reasoning_tokens'),
    figure('cost_usd'),
    figure('estimated_requests'),
    figure('estimated_cost_usd'),
    figure('unpriced_requests'),
    { name: 'period', value: () => period },
  ]
}

/** The table in pieces of about 64 kB: the header, then the items as they arrive. */
export async function* csv<T>(
  fields: readonly Field<T>[], items: AsyncIterable<T> | Iterable<T>,
): AsyncGenerator<string> {
  let chunk = csvHeader(fields)
  for await (const item of items) {
    chunk += csvLine(fields, item)
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = ''
  }
  yield chunk
}
