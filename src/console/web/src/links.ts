import { searchOf } from './range.ts'
import type { TimeRange } from './range.ts'

/** What the list of requests can be narrowed to. */
export interface LogFilter {
  readonly key?: string
  readonly model?: string
  readonly upstream?: string
  readonly status?: string
  readonly end?: string
  /** Of which kinds the requests have none: `key`, `model`, `upstream`, with commas between. */
  readonly without?: string
}

/** Of one key, model or upstream; null: those that have none. */
export function onlyOf(kind: 'key' | 'model' | 'upstream', name: string | null): LogFilter {
  return name === null ? { without: kind } : { [kind]: name }
}

/** The list of the requests of a time that a filter fits. */
export function logsHref(range: TimeRange, filter: LogFilter): string {
  return `/logs?${new URLSearchParams({ ...searchOf(range), ...filter })}`
}
