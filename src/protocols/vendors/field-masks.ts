import type { IncomingHttpHeaders } from 'node:http'
import { CHAT_AT_GOOGLE } from '../endpoint/google-paths.ts'
import type { Endpoint } from '../endpoint/protocol.ts'
import type { RequestTarget } from '../request/target.ts'

const GOOGLE_API_HOST = /(?:^|\.)googleapis\.com$/

/**
 * Finds field masks of a request. A field mask makes Google's APIs leave out parts of a response, such as the usage or the mark that a
 * stream has ended. Source: cloud.google.com/apis/docs/system-parameters.
 *
 * @param host the host of the upstream
 * @returns the masks that leave out parts that the gateway needs; usually none
 */
export function fieldMasks({ format }: Endpoint, { path, query }: RequestTarget, headers: IncomingHttpHeaders, host: string): readonly string[] {
  const inHeader = headers['x-goog-fieldmask'] ?? []
  if (query === '' && inHeader.length === 0) return []
  const { unmaskedMembers: needed, isGoogles } = format
  if (needed === null) return []
  if (!isGoogles && !CHAT_AT_GOOGLE.test(path.toLowerCase()) && !GOOGLE_API_HOST.test(host)) return []
  const params = new URLSearchParams(query)
  // An empty mask selects all fields.
  return [params.getAll('fields'), params.getAll('$fields'), inHeader].flat().filter(mask => {
    const names = new Set(mask.split(',').map(name => name.trim()))
    return mask !== '' && !names.has('*') && !needed.every(name => names.has(name))
  })
}
