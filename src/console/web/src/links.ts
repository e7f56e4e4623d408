import { searchOf } from './range.ts'
import type { TimeRange } from './range.ts'

/** Filters of the Logs page. */
export interface LogFilter {
  readonly key?: string
  readonly model?: string
  readonly upstream?: string
  readonly status?: string
  readonly end?: string
  /** Requests that have none of these: `key`, `model`, `upstream`, separated by commas. */
  readonly without?: string
}

/** Filter for one key, model or upstream; null for requests without one. */
export function filterFor(kind: 'key' | 'model' | 'upstream', name: string | null): LogFilter {
  return name === null ? { without: kind } : { [kind]: name }
}

/** Link to the requests in a time range that match a filter. */
export function logsHref(range: TimeRange, filter: LogFilter): string {
  return `/logs?${new URLSearchParams({ ...searchOf(range), ...filter })}`
}
