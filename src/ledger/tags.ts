/* Tags are stored as one JSON object without spaces, as JSON.stringify writes it. */

/** A tag's name, as the configuration allows it: SQL can contain it. */
const NAME = /^[a-z][a-z0-9_-]{0,63}$/

export function isTagName(name: string): boolean {
  return NAME.test(name)
}

/** The value of a tag as JSON text, as SQL of SQLite for rows; NULL = none. @param name a tag's name */
export function sqliteTag(name: string): string {
  return `CASE WHEN json_valid(tags) THEN tags -> '$."${checked(name)}"' END`
}

/** Like `sqliteTag`, as SQL of PostgreSQL, which cannot skip invalid JSON. */
export function postgresTag(name: string): string {
  return String.raw`substring(tags FROM '"${checked(name)}":("(?:[^"\\]|\\.)*")')`
}

/** The part of the stored text by which a row has this value; quotes inside values are escaped, so it occurs nowhere else. */
export function storedTag(name: string, value: string): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`
}

/** @param json of `sqliteTag` or `postgresTag` @returns null = no text */
export function tagValue(json: unknown): string | null {
  if (typeof json !== 'string') return null
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'string' ? value : null
  } catch {
    // Another program wrote it.
    return null
  }
}

/** @throws {RangeError} not a tag's name */
function checked(name: string): string {
  if (!isTagName(name)) throw new RangeError(`'${name}' is no name of a tag`)
  return name
}
