import { END_LABELS } from '../../ends.ts'
import type { End } from '../../ends.ts'

/** Which requests are shown, besides their time. It stands in the page's address, under the API's names. */
export interface LogFilter {
  readonly key?: string
  readonly model?: string
  readonly upstream?: string
  /** 503, a class such as 5xx, or none. */
  readonly status?: string
  readonly end?: End | 'failed'
  /** Of which names the requests have none, with commas between. */
  readonly without?: string
}

const NAMES = ['key', 'model', 'upstream'] as const
export type NameFilter = (typeof NAMES)[number]
const STATUS = /^([1-5]xx|[1-5]\d\d|none)$/
export const FILTERS = [...NAMES, 'status', 'end', 'without'] as const

/** @returns what the address asks for; what makes no sense there is left out */
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
  return filter
}

/** The names that requests are to have none of. */
export function withoutOf(text: string | null | undefined): NameFilter[] {
  const asked = new Set(text?.split(','))
  return NAMES.filter(name => asked.has(name))
}

/** Requests with that name alone; null: with none, undefined: with any. */
export function narrowFilter(
  filter: LogFilter, name: NameFilter, to: string | null | undefined,
): Record<string, string | null> {
  const others = withoutOf(filter.without).filter(each => each !== name)
  return { [name]: to ?? null, without: (to === null ? [...others, name] : others).join(',') }
}

/** @returns the address with some conditions changed; null takes one away */
export function changeFilter(
  search: URLSearchParams, change: Readonly<Record<string, string | null>>,
): URLSearchParams {
  const next = new URLSearchParams(search)
  for (const [name, value] of Object.entries(change)) {
    if (value === null || value === '') next.delete(name)
    else next.set(name, value)
  }
  return next
}

/**
 * The request id in what somebody pasted: alone, in quotes, as a header's line or
 * out of a line of JSON.
 */
export function parsePastedId(text: string): string {
  return text
    .replace(/^[\s"'`{]*(?:x-gateway-request-id|request[-_ ]?id)["']?\s*[:=]\s*/i, '')
    .replaceAll(/^[\s"'`“”‘’<([]+|[\s"'`“”‘’>)\],;.}]+$/g, '')
}
