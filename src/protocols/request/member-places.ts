import { JsonCursor } from '../json/cursor.ts'
import { WatchedKeys, loosely } from '../json/watched-keys.ts'
import type { Field } from '../json/json-scan.ts'

/** A member, and the object around it. */
export interface FoundMember extends Pick<Field, 'keyStart' | 'start' | 'end'> {
  /** Offset behind the brace of the object. */
  readonly open: number
}

/** An object that lacks the rest of a path. */
export interface Gap {
  readonly open: number
  readonly isEmpty: boolean
  /** Number of names of the path that lead to the object. */
  readonly depth: number
}

/** Where a path leads in a body. Names match in any case and with any separators, as lenient servers read them, and can be repeated. */
export interface MemberPlaces {
  readonly found: FoundMember[]
  readonly gaps: Gap[]
  /** Values that are no objects, instead of an object of the path. `depth`: as for a gap. */
  readonly blocked: (FoundMember & { readonly depth: number })[]
}

/**
 * @param body valid JSON @param paths names of at most four nested members @param anySpelling false = only names that are spelled alike
 * @returns the places of each path; null = the body is no object
 */
export function findMembers(body: Buffer, paths: readonly (readonly string[])[], anySpelling = true): MemberPlaces[] | null {
  const places = paths.map((): MemberPlaces => ({ found: [], gaps: [], blocked: [] }))
  const search = paths.map((path, at) => ({ path, places: places[at] as MemberPlaces }))
  return visit(body, 0, body.length, search, 0, anySpelling) ? places : null
}

interface Search {
  readonly path: readonly string[]
  readonly places: MemberPlaces
}

/** @returns false = the value is no object */
function visit(body: Buffer, start: number, end: number, searches: readonly Search[], depth: number, anySpelling: boolean): boolean {
  const cursor = new JsonCursor(body, start, end)
  const open = body.indexOf('{', start) + 1
  if (!cursor.beginObject()) return false
  const byName = Map.groupBy(searches, ({ path }) => (anySpelling ? loosely(path[depth] as string) : path[depth] as string))
  const names = [...byName.keys()]
  const keys = anySpelling ? new WatchedKeys([], [], names) : new WatchedKeys(names)
  const missing = new Set(searches)
  let isEmpty = true
  while (cursor.nextMember()) {
    isEmpty = false
    const name = keys.find(body, cursor.keyStart, cursor.keyEnd)
    const keyStart = cursor.keyStart - 1
    if (!cursor.skip()) break
    if (name === null) continue
    const member = { keyStart, start: cursor.valueStart, end: cursor.valueEnd, open }
    const named = byName.get(name) ?? []
    for (const search of named) missing.delete(search)
    for (const { path, places } of named) if (path.length === depth + 1) places.found.push(member)
    const deeper = named.filter(({ path }) => path.length > depth + 1)
    if (deeper.length === 0 || visit(body, member.start, member.end, deeper, depth + 1, anySpelling)) continue
    for (const { places } of deeper) places.blocked.push({ ...member, depth: depth + 1 })
  }
  for (const { places } of missing) places.gaps.push({ open, isEmpty, depth })
  return true
}
