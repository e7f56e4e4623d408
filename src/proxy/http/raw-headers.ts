/** Node's flat list of header names and values, in the order and spelling of the sender. */
export type RawHeaders = readonly string[]

/** @param name lower-case @returns all values of the header, joined by commas; null = none */
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

/** @returns the headers as node expects them: by lower-case name, with an array if a name has several values */
export function groupHeaders(flat: RawHeaders): Record<string, string | string[]> {
  // Use no prototype, because a header can have the name of an inherited member.
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
