/** A parsed header value, such as `form-data; name="model"`. */
export interface HeaderValue {
  /** The part before the first semicolon, in lower case. */
  readonly value: string
  /** Parameters by lower-case name. A quoted value is the text between the quotes, with its escapes. */
  readonly params: ReadonlyMap<string, string>
}

const VALUE = /^[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z/-]+)[ \t]*/
const PARAM = /;[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\[^])*)"|([^\s";]+)))?[ \t]*/y

/**
 * Parses a header value with parameters (RFC 9110, section 5.6.6). Accepts more than the RFC, because clients do not follow it: an unquoted
 * value may contain any character except white space, quote and semicolon, and a parameter may be empty.
 *
 * @returns null = the value is malformed, or repeats a parameter
 */
export function parseHeaderParams(header: string): HeaderValue | null {
  const value = VALUE.exec(header)
  if (value === null) return null
  const params = new Map<string, string>()
  let at = value[0].length
  while (at < header.length) {
    PARAM.lastIndex = at
    const param = PARAM.exec(header)
    if (param === null) return null
    at = PARAM.lastIndex
    const name = param[1]?.toLowerCase()
    if (name === undefined) continue
    if (params.has(name)) return null
    params.set(name, param[2] ?? param[3] ?? '')
  }
  return { value: value[1]!.toLowerCase(), params }
}
