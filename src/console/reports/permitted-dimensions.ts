import { ReportError } from './report-error.ts'
import type { Dimensions } from './sums.ts'

/** Members of queries that select or group requests. */
type ReportQuery = { readonly [N in 'key' | 'model' | 'upstream' | 'without' | 'by' | 'owner']?: string }

/**
 * @param own the key of a key holder; null = the user may see all keys
 * @throws ReportError `forbidden`; `bad_request` if conditions contradict each other
 */
export function permittedDimensions(query: ReportQuery, own: string | null): Dimensions {
  const { key, upstream, by, owner } = query
  const without = query.without?.split(',') ?? []
  if (own !== null) {
    if (key !== undefined && key !== own) forbid('You can see only your own key.', 'key')
    if (without.includes('key')) forbid('You can see only your own key.', 'without')
    const groups = by?.split(',') ?? []
    if (groups.includes('upstream')) forbid('You cannot see upstreams.', 'by')
    if (groups.includes('owner') || groups.includes('group')) forbid('You cannot see owners and groups.', 'by')
    if (owner !== undefined) forbid('You cannot see owners.', 'owner')
    if (upstream !== undefined) forbid('You cannot see upstreams.', 'upstream')
    if (without.includes('upstream')) forbid('You cannot see upstreams.', 'without')
  }
  const asked: { -readonly [N in keyof Dimensions]: Dimensions[N] } = {}
  for (const name of ['key', 'model', 'upstream'] as const) {
    const wanted = query[name]
    if (wanted !== undefined) asked[name] = wanted
    if (!without.includes(name)) continue
    if (wanted !== undefined) throw new ReportError('bad_request', `${name} and without=${name} exclude each other.`, 'without')
    asked[name] = null
  }
  return own === null ? asked : { ...asked, key: own }
}

function forbid(message: string, field: string): never {
  throw new ReportError('forbidden', message, field)
}
