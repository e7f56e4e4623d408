import type { JsonCursor } from './cursor.ts'

const USAGE_METADATA = Buffer.from('usageMetadata')

/** Reads the value at the cursor, and moves the cursor behind the value; undefined = no value. */
type ValueReader = (cursor: JsonCursor) => unknown

export const parsedValue: ValueReader = cursor => (cursor.skip() ? cursor.parsed() : undefined)

/** The value of a top-level member; undefined = none. Of duplicates, the last counts. */
export function member(cursor: JsonCursor, name: Buffer): unknown {
  return members(cursor, [name, parsedValue])[0]
}

/** The values of several members in the order of `wanted`. Each member's reader converts its value. */
export function members(cursor: JsonCursor, ...wanted: readonly (readonly [name: Buffer, take: ValueReader])[]): unknown[] {
  const values: unknown[] = wanted.map(() => undefined)
  if (!cursor.beginObject()) return values
  while (cursor.nextMember()) {
    let at = wanted.length - 1
    while (at >= 0 && !cursor.keyIs(wanted[at]![0])) at--
    if (at < 0) {
      cursor.skip()
      continue
    }
    const value = wanted[at]![1](cursor)
    if (value !== undefined) values[at] = value
  }
  return values
}

/** The `usageMetadata` of a body. In a stream that is one JSON array, the last `usageMetadata`. */
export function lastMetadata(cursor: JsonCursor): unknown {
  if (!cursor.beginArray()) return member(cursor, USAGE_METADATA)
  let last: unknown
  while (cursor.nextElement()) {
    if (!cursor.isObject()) cursor.skip()
    else last = member(cursor, USAGE_METADATA) ?? last
  }
  return last
}
