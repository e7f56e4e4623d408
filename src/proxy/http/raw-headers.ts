/** Node's flat list of names and values, in the sender's order and spelling. */
export type RawHeaders = readonly string[]

/** All values with a name, joined; null = none. @param name lower-case */
export function headerValue(raw: RawHeaders, name: string): string | null {
  let found: string | null = null
  for (let i = 0; i < raw.length; i += 2) {
    const own = raw[i] as string
    if (own.length !== name.length || own.toLowerCase() !== name) continue
    found = found === null ? (raw[i + 1] as string) : `${found}, ${raw[i + 1]}`
  }
  return found
}

/** @param lower lower-case */
export function isNamed(name: string, lower: string): boolean {
  return name.length === lower.length && name.toLowerCase() === lower
}

/** By lower-case name, with an array for several values, as node expects headers. */
export function groupHeaders(flat: RawHeaders): Record<string, string | string[]> {
  // A header can have the name of an inherited member.
  const headers = Object.create(null) as Record<string, string | string[]>
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
