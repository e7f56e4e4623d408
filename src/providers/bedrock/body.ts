import { scanJson, type Field } from '../../protocols/json/json-scan.ts'
import { parseRequest } from '../../base/json-size.ts'
import { WatchedKeys } from '../../protocols/json/watched-keys.ts'
import { replaceMembers } from '../shared/replace-members.ts'

const VERSION = '"bedrock-2023-05-31"'
/** Added to requests of CountTokens, because a complete request requires `max_tokens`. */
const COUNTED_MAX_TOKENS = '"max_tokens":1'

/** Members that are removed from the body: the path contains them, or they are added again with another value. */
const OWN_MEMBERS = ['model', 'stream', 'anthropic_version', 'anthropic_beta'] as const
const WATCHED = new WatchedKeys([...OWN_MEMBERS, 'max_tokens'])

/** Removes the members that the path contains, and adds the members that are headers in Anthropic's API. */
export function invokeBody(body: Buffer, headers: readonly string[]): Buffer {
  return rewritten(body, headers, false)
}

export function countBody(body: Buffer, headers: readonly string[]): Buffer {
  const counted = rewritten(body, headers, true)
  return Buffer.from(JSON.stringify({ input: { invokeModel: { body: counted.toString('base64') } } }))
}

/** Does not change the bytes of other members. Does not change a body that is not an object, which the provider refuses. */
function rewritten(body: Buffer, headers: readonly string[], isCounted: boolean): Buffer {
  const scan = scanJson(body, WATCHED)
  if (!scan.ok || scan.members === null) return body
  const removed = OWN_MEMBERS.flatMap(name => scan.fields.get(name) ?? [])
  const betas = betasOf(body, scan.fields.get('anthropic_beta')?.at(-1), headers)
  const version = scan.fields.get('anthropic_version')?.at(-1)
  const added = [
    `"anthropic_version":${version === undefined ? VERSION : body.toString('utf8', version.start, version.end)}`,
    ...betas.length === 0 ? [] : [`"anthropic_beta":${JSON.stringify(betas)}`],
    ...isCounted && !scan.fields.has('max_tokens') ? [COUNTED_MAX_TOKENS] : [],
  ]
  return replaceMembers(body, scan.members, removed, added)
}

/** The beta features that the request enables, in its headers or in its body. */
function betasOf(body: Buffer, field: Field | undefined, headers: readonly string[]): string[] {
  const given = field === undefined ? [] : parseRequest(body.toString('utf8', field.start, field.end))
  const inBody = (Array.isArray(given) ? given : [given]).filter(value => typeof value === 'string')
  const inHeaders = headers.filter((_, i) => i % 2 === 1 && (headers[i - 1] as string).toLowerCase() === 'anthropic-beta')
  const names = [...inBody, ...inHeaders.flatMap(value => value.split(','))].map(name => name.trim())
  return [...new Set(names)].filter(name => name !== '')
}
