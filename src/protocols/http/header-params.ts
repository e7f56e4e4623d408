/** A header value such as `form-data; name="model"`. */
export interface HeaderValue {
  /** The part before the first semicolon, lower-case. */
  readonly value: string
  /** By lower-case name. A quoted value is kept as it is between the quotes. */
  readonly params: ReadonlyMap<string, string>
}

const VALUE = /^[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z/-]+)[ \t]*/
const PARAM = /;[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\[^])*)"|([^\s";]+)))?[ \t]*/y

/**
 * Parses a header value with parameters (RFC 9110, section 5.6.6). For the sake of clients, an unquoted value may contain any
 * character except white space, quote and semicolon, and a parameter may be empty.
 *
 * @returns null = wrong form, or a repeated parameter
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
