import type { QueryOf } from '../../api.ts'
import type { Order } from '../../components/data-table.tsx'

type Query = QueryOf<'GET /billing'>
type Sort = NonNullable<Query['sort']>

/** The visible part of the table. It is stored in the page's URL. */
export interface TableState {
  readonly search: string
  /** The order of the groups; null = the highest cost first. */
  readonly order: Order | null
  /** Number of groups before the first visible group. */
  readonly offset: number
}

export function tableStateOf(search: URLSearchParams): TableState {
  const column = search.get('sort')
  const offset = Number(search.get('offset'))
  return {
    search: search.get('search') ?? '',
    order: column === null ? null : { column, descending: search.get('order') !== 'asc' },
    offset: Number.isSafeInteger(offset) && offset > 0 ? offset : 0,
  }
}

/** The parameters of the URL for a state; null removes a parameter. */
export function parametersOf({ search, order, offset }: TableState): Record<string, string | null> {
  return {
    search: search === '' ? null : search,
    sort: order?.column ?? null,
    order: order !== null && !order.descending ? 'asc' : null,
    offset: offset === 0 ? null : String(offset),
  }
}

/** @param limit - number of groups on a page */
export function pageQueryOf({ search, order, offset }: TableState, limit: number): Query {
  return {
    limit,
    ...offset > 0 && { offset },
    ...search !== '' && { search },
    ...order !== null && { sort: order.column as Sort, order: order.descending ? 'desc' as const : 'asc' as const },
  }
}
