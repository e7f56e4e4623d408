import { GatewayError } from '../../base/errors.ts'
import { extractKey, type QueryKey } from './query.ts'

/** A normalised request target. The gateway uses the same strings to route and to forward. */
export interface RequestTarget extends QueryKey {
  /** Starts with one slash. Has no dot segments, doubled slashes, needless escapes or fragment. */
  readonly path: string
  /** The query with its question mark, or empty. Does not contain the client's key. */
  readonly query: string
}

const ABSOLUTE_FORM = /^https?:\/\/(?:[\w.~%-]+|\[[\da-f:.]+\])(?::\d*)?(?=[/?]|$)/i
// Characters of a path: those of RFC 3986 (pchar), and a few more that clients send without escapes.
const SAFE_PATH = /^\/[\w\-.~!$&'()*+,;=:@/%|^"{}[\]`<>]*$/
const BAD_ESCAPE = /%(?![0-9a-f]{2})/i
const ESCAPE = /%([0-9a-f]{2})/gi
// If one of these characters is escaped, the path has the same meaning as without the escape (RFC 3986 section 6.2.2.2).
const UNRESERVED = /[\w\-.~]/
const NEEDS_NORMALISING = /%|\/\.|\/\//

/**
 * Reads targets in origin-form and absolute-form (RFC 9112 section 3.2). Ignores the authority, because the gateway serves all names.
 * @throws GatewayError bad_request_target for targets that parsers could read as different paths: dot segments however escaped,
 *   backslashes, control characters, malformed escapes
 */
export function parseTarget(raw: string): RequestTarget {
  let target = raw
  if (target.charCodeAt(0) !== 0x2f) {
    const authority = ABSOLUTE_FORM.exec(target)
    if (!authority) throw bad('the request target must be a path such as /v1/models')
    target = target.slice(authority[0].length)
    if (target.charCodeAt(0) !== 0x2f) target = `/${target}`
  }
  const hash = target.indexOf('#')
  if (hash !== -1) throw bad('the request target must not have a fragment')
  const mark = target.indexOf('?')
  const path = normalisePath(mark === -1 ? target : target.slice(0, mark))
  if (mark === -1) return { path, query: '', queryKey: null, isGoogles: false }
  return { path, ...checkedQuery(target.slice(mark)) }
}

function normalisePath(raw: string): string {
  if (!SAFE_PATH.test(raw)) throw bad('the path holds a character that must be percent-encoded')
  if (!NEEDS_NORMALISING.test(raw)) return raw
  const path = raw.replace(/\/{2,}/g, '/')
  if (BAD_ESCAPE.test(path)) throw bad('the path holds a malformed percent-escape')
  let decoded: string
  try {
    decoded = decodeURIComponent(path)
  } catch {
    throw bad('the path holds percent-escapes that are not UTF-8')
  }
  for (let i = 0; i < decoded.length; i++) {
    const code = decoded.charCodeAt(i)
    if (code < 0x20 || code === 0x7f || code === 0x5c) throw bad('the path holds an escaped control character or backslash')
  }
  for (const segment of decoded.split('/')) {
    if (segment === '.' || segment === '..') throw bad("the path must not contain '.' or '..' segments")
  }
  return path.replace(ESCAPE, (escape, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return UNRESERVED.test(character) ? character : escape
  })
}

function checkedQuery(query: string): ReturnType<typeof extractKey> {
  for (let i = 0; i < query.length; i++) {
    const code = query.charCodeAt(i)
    // A code above 0xff cannot be a byte that the client sent.
    if (code <= 0x20 || code === 0x7f || code > 0xff) throw bad('the query holds a character that must be percent-encoded')
  }
  return extractKey(query)
}

function bad(message: string): GatewayError {
  return new GatewayError('bad_request_target', message)
}
