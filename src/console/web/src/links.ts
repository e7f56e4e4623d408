import { searchOf } from './range.ts'
import type { TimeRange } from './range.ts'

/** What the list of requests can be narrowed to. */
export interface LogFilter {
  readonly key?: string
  readonly model?: string
  readonly upstream?: string
  readonly status?: string
  readonly end?: string
}

/** The list of the requests of a time that a filter fits. */
export function logsHref(range: TimeRange, filter: LogFilter): string {
  return `/logs?${new URLSearchParams({ ...searchOf(range), ...filter })}`
}
