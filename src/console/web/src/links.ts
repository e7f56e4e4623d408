import { searchOf, type TimeRange } from './range.ts'

/** Filters of the Logs page. */
export interface LogFilter {
  readonly key?: string
  readonly model?: string
  readonly upstream?: string
  readonly status?: string
  readonly end?: string
  /** Names that the requests lack: `key`, `model`, `upstream`, separated by commas. */
  readonly without?: string
  /** Conditions as a text query. */
  readonly q?: string
}

/** The kinds of names by which requests can be filtered. */
type FilterKind = 'key' | 'model' | 'upstream'

/** The filter for one key, model or upstream; null = for requests without one. */
export function filterFor(kind: FilterKind, name: string | null): LogFilter {
  return name === null ? { without: kind } : { [kind]: name }
}

/**
 * The filter for the requests of a group on the Billing page.
 * @returns null = the Logs page cannot filter by one of the dimensions: the owner of a key, for example, can change
 */
export function filterForGroup(by: readonly string[], names: readonly (string | null)[]): LogFilter | null {
  const without: string[] = []
  const query: string[] = []
  const filter: Record<string, string> = {}
  for (const [n, kind] of by.entries()) {
    const name = names[n] ?? null
    if (kind === 'status') filter['status'] = name ?? 'none'
    else if (kind === 'group' || kind === 'protocol') query.push(`${kind}:${name === null ? 'none' : JSON.stringify(name)}`)
    else if (kind === 'owner') return null
    else if (kind === 'user' || kind.startsWith('tag:')) query.push(attributedTerm(kind, name))
    else if (name === null) without.push(kind)
    else filter[kind] = name
  }
  return {
    ...filter, ...without.length > 0 && { without: without.join() }, ...query.length > 0 && { q: query.join(' ') },
  }
}

/** A condition of the text query. @param kind - `user` or `tag:project` @param name - null = requests without one */
export function attributedTerm(kind: string, name: string | null): string {
  return `${kind}${kind === 'user' ? ':' : '='}${name === null ? 'none' : JSON.stringify(name)}`
}

/**
 * Link to a line of the configuration.
 *
 * @param line from 1
 * @param text the active file, or the file that the last reload rejected
 */
export function lineHref(line: number, text: 'active' | 'rejected' = 'active'): string {
  return `/configuration?${new URLSearchParams({ ...text === 'rejected' && { text }, line: String(line) })}`
}

/** Link to the page of an upstream. */
export function upstreamHref(name: string, range: TimeRange): string {
  return `/upstreams/${encodeURIComponent(name)}?${new URLSearchParams(searchOf(range))}`
}

/** Link to the requests that start in a time range and match a filter. */
export function logsHref(range: TimeRange, filter: LogFilter): string {
  return `/logs?${new URLSearchParams({ ...searchOf(range), ...filter })}`
}
