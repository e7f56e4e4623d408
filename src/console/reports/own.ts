import { ReportError } from './report-error.ts'
import type { Dimensions } from './sums.ts'

/**
 * What may be asked for: of the holder of a key, that key's requests alone, and
 * nothing by upstream.
 * @param own the holder's key; null for somebody who may see all
 * @throws ReportError `forbidden`
 */
export function mine(query: Dimensions & { readonly by?: string }, own: string | null): Dimensions {
  const { key, model, upstream, by } = query
  const asked = {
    ...key !== undefined && { key },
    ...model !== undefined && { model },
    ...upstream !== undefined && { upstream },
  }
  if (own === null) return asked
  if (key !== undefined && key !== own) {
    throw new ReportError('forbidden', 'only your own key is yours to see', 'key')
  }
  if (upstream !== undefined || by === 'upstream') {
    throw new ReportError('forbidden', 'upstreams are not yours to see', by === 'upstream' ? 'by' : 'upstream')
  }
  return { ...asked, key: own }
}
