import { isTagName } from '../../ledger/tags.ts'
import { ReportError } from './report-error.ts'
import type { Dimensions } from './sums.ts'

/** Members of queries that select or group requests. */
type ReportQuery = { readonly [N in 'key' | 'model' | 'upstream' | 'without' | 'by' | 'owner' | 'user' | 'tag']?: string }

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
  if (query.user !== undefined) asked.user = query.user
  if (query.tag !== undefined) asked.tag = tagOf(query.tag)
  return own === null ? asked : { ...asked, key: own }
}

/** @param text such as `project=alpha` */
function tagOf(text: string): { name: string, value: string } {
  const at = text.indexOf('=')
  const name = text.slice(0, at)
  if (at === -1 || !isTagName(name)) throw new ReportError('bad_request', 'Write a tag as NAME=VALUE, such as project=alpha.', 'tag')
  return { name, value: text.slice(at + 1) }
}

function forbid(message: string, field: string): never {
  throw new ReportError('forbidden', message, field)
}
