import { END_LABELS, type End } from '../../end-labels.ts'

/** The filters other than the time range. They are parameters of the page's URL, with the names of the API. */
export interface LogFilter {
  readonly key?: string
  readonly model?: string
  readonly upstream?: string
  /** A status such as 503, a class such as 5xx, or `none` (no status was sent). */
  readonly status?: string
  readonly end?: End | 'failed'
  /** Names that the requests lack: `key`, `model`, `upstream`, separated by commas. */
  readonly without?: string
  /** Conditions as a text query, which the API parses: `status:5xx cost>0.01`. */
  readonly q?: string
}

/** The columns by which requests can be sorted, with the names of the API. */
const SORTS = ['started', 'ttft', 'duration', 'cost', 'input', 'output', 'status'] as const
type SortColumn = (typeof SORTS)[number]
/** With `-` in front, the order is descending. */
export type Sort = SortColumn | `-${SortColumn}`

/** @returns the order in the page's URL; null = the newest first */
export function sortOf(search: URLSearchParams): Sort | null {
  const text = search.get('sort') ?? ''
  const isKnown = SORTS.some(name => name === text || `-${name}` === text)
  return isKnown && text !== '-started' ? text as Sort : null
}

const NAMES = ['key', 'model', 'upstream'] as const
export type NameFilter = (typeof NAMES)[number]
const STATUS = /^([1-5]xx|[1-5]\d\d|none)$/
export const FILTERS = [...NAMES, 'status', 'end', 'without', 'q'] as const

/** @returns the filters in the page's URL; invalid filters are ignored */
export function filterOf(search: URLSearchParams): LogFilter {
  const filter: { -readonly [N in keyof LogFilter]: LogFilter[N] } = {}
  for (const name of NAMES) {
    const value = search.get(name)
    if (value !== null && value !== '') filter[name] = value
  }
  const without = withoutOf(search.get('without')).filter(name => filter[name] === undefined)
  if (without.length > 0) filter.without = without.join(',')
  const status = search.get('status')
  if (status !== null && STATUS.test(status)) filter.status = status
  const end = search.get('end')
  if (end !== null && (end === 'failed' || Object.hasOwn(END_LABELS, end))) filter.end = end as End
  const query = search.get('q')?.trim() ?? ''
  if (query !== '') filter.q = query
  return filter
}

/** Parses `without`. */
export function withoutOf(text: string | null | undefined): NameFilter[] {
  const parts = new Set(text?.split(','))
  return NAMES.filter(name => parts.has(name))
}

/** Changes the filter by one name. @param value - null = requests without such a name; undefined = no filter */
export function narrowFilter(
  filter: LogFilter, name: NameFilter, value: string | null | undefined,
): Record<string, string | null> {
  const others = withoutOf(filter.without).filter(each => each !== name)
  return { [name]: value ?? null, without: (value === null ? [...others, name] : others).join(',') }
}

/** @returns the parameters of the URL with changed filters; null removes a filter */
export function changeFilter(
  search: URLSearchParams, changes: Readonly<Record<string, string | null>>,
): URLSearchParams {
  const next = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name)
    else next.set(name, value)
  }
  return next
}

/** Finds the request ID in a text that was pasted: the ID itself, the ID in quotes, a header line, or a part of JSON. */
export function parsePastedId(text: string): string {
  return text
    .replace(/^[\s"'`{]*(?:x-gateway-request-id|request[-_ ]?id)["']?\s*[:=]\s*/i, '')
    .replaceAll(/^[\s"'`“”‘’<([]+|[\s"'`“”‘’>)\],;.}]+$/g, '')
}
