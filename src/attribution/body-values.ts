import { JsonCursor } from '../protocols/json/cursor.ts'
import type { Field } from '../protocols/json/json-scan.ts'
import { WatchedKeys } from '../protocols/json/watched-keys.ts'
import type { InspectedBody } from '../protocols/request/inspect.ts'

/** Longest value, in characters. */
export const MAX_VALUE = 128
/** A longer object is not searched: vendors allow 16 values of 512 characters. */
const MAX_OBJECT_BYTES = 64 * 1024
/** JSON of the longest value: each character as `\\u0041`, and the quotes. */
const MAX_STRING_BYTES = MAX_VALUE * 6 + 2

/** What a source has; text null = no text, or one that is too long to be read. */
export interface Given {
  /** For people: `metadata.project`. */
  readonly where: string
  readonly text: string | null
}

/** What a body says of its user and its tags. */
export interface BodyValues {
  /** In the order of preference. */
  readonly user: readonly Given[]
  readonly tags: ReadonlyMap<string, readonly Given[]>
}

const NOTHING: BodyValues = { user: [], tags: new Map() }
const USER_ID = 'user_id'

/** Reads the members that the scan of the body has found: the body is not parsed again. */
export class BodyReader {
  readonly #tags: ReadonlySet<string>
  readonly #keys: WatchedKeys

  /** @param tags names of all tags */
  constructor(tags: readonly string[]) {
    this.#tags = new Set(tags)
    this.#keys = new WatchedKeys([...tags, USER_ID])
  }

  read(body: InspectedBody | null): BodyValues {
    if (body === null || body.json === null) return NOTHING
    const { bytes, json: { fields } } = body
    const user: Given[] = []
    for (const name of ['user', 'safety_identifier']) {
      const field = fields.get(name)?.at(-1)
      if (field !== undefined && field.type !== 'null') user.push({ where: name, text: textOf(bytes, field) })
    }
    const tags = new Map<string, Given[]>()
    for (const member of ['metadata', 'labels']) {
      const field = fields.get(member)?.at(-1)
      if (field?.type !== 'object' || field.end - field.start > MAX_OBJECT_BYTES) continue
      for (const [name, text] of this.#valuesIn(bytes, field)) {
        const given = { where: `${member}.${name}`, text }
        if (name === USER_ID && member === 'metadata') user.push(given)
        if (this.#tags.has(name)) tags.set(name, [...tags.get(name) ?? [], given])
      }
    }
    return { user, tags }
  }

  /** The last value of each name, as parsers read it. */
  #valuesIn(bytes: Buffer, { start, end }: Field): Map<string, string | null> {
    const values = new Map<string, string | null>()
    const cursor = new JsonCursor(bytes, start, end)
    cursor.beginObject()
    while (cursor.nextMember()) {
      const name = this.#keys.find(bytes, cursor.keyStart, cursor.keyEnd)
      const isText = cursor.isString()
      cursor.skip()
      if (name === null) continue
      values.set(name, isText ? textOf(bytes, { type: 'string', start: cursor.valueStart, end: cursor.valueEnd }) : null)
    }
    return values
  }
}

function textOf(bytes: Buffer, { type, start, end }: Pick<Field, 'type' | 'start' | 'end'>): string | null {
  if (type !== 'string' || end - start > MAX_STRING_BYTES) return null
  return JSON.parse(bytes.toString('utf8', start, end)) as string
}
