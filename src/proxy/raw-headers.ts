/** Headers as node hands them over raw: a flat list of names and values, in the order and the spelling of the sender. */
export type RawHeaders = readonly string[]

/** Values of all headers of that name, lower-case, joined; null = none. */
export function headerValue(raw: RawHeaders, name: string): string | null {
  let found: string | null = null
  for (let i = 0; i < raw.length; i += 2) {
    if (!isNamed(raw[i] as string, name)) continue
    found = found === null ? (raw[i + 1] as string) : `${found}, ${raw[i + 1]}`
  }
  return found
}

/** Is it this header? @param lower the other name, lower-case */
export function isNamed(name: string, lower: string): boolean {
  return name.length === lower.length && name.toLowerCase() === lower
}

/**
 * Objects without inherited members: a header may be named as one of them. What `Object.create(null)` makes is
 * a hash table to V8, which http-proxy-3 copies at three times the cost.
 */
const NoMembers = function () {} as unknown as new () => Record<string, string | string[]>
NoMembers.prototype = Object.create(null)

/** The headers by name, lower-case, with an array where one has several values: as node takes them. */
export function groupHeaders(flat: RawHeaders): Record<string, string | string[]> {
  const headers = new NoMembers()
  for (let i = 0; i < flat.length; i += 2) {
    const name = (flat[i] as string).toLowerCase()
    const value = flat[i + 1] as string
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (Array.isArray(before)) before.push(value)
    else headers[name] = [before, value]
  }
  return headers
}

/**
 * The lines of headers that were made from `raw`. What was not changed since keeps its spelling, order and
 * separate lines, none of which `Headers` keeps; what was changed or added follows.
 */
export function headerLines(headers: Headers, raw: RawHeaders): string[] {
  const before = groupHeaders(raw)
  const changed: string[] = []
  let keptLines = 0
  for (const [name, value] of headers) {
    const was = before[name]
    if (was === value) keptLines += 1
    // `Headers` gives each Set-Cookie for itself.
    else if (Array.isArray(was) && was.join(', ') === headers.get(name)) keptLines += name === 'set-cookie' ? 1 : was.length
    else changed.push(name, value)
  }
  if (keptLines * 2 === raw.length) return [...raw, ...changed]
  const isKept = (_: string, i: number): boolean => {
    const name = (raw[i - (i % 2)] as string).toLowerCase()
    return [before[name]].flat().join(', ') === headers.get(name)
  }
  return [...raw.filter(isKept), ...changed]
}
