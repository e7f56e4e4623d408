import { removals } from '../json/member-edits.ts'
import { replaceValues, type Edit } from '../json/splice.ts'
import { findMembers, type MemberPlaces } from './member-places.ts'

/** Bytes of a value that is read. Numbers and short names are shorter, and a long value is only replaced. */
const MAX_READ = 100
export const LONG = Symbol('long value')

export interface MemberChange {
  /** The names that lead to the member. */
  readonly path: readonly string[]
  /** Chooses the value. @param present the values of the member, in the order of the body; LONG for long ones @returns undefined = no change */
  valueFor(present: readonly unknown[]): unknown
}

/**
 * Edits that give members a value. Every spelling and repetition of a name is changed: servers differ in which one counts.
 * @param anySpelling false = other spellings stay, and the member is added beside them
 */
export function changeMembers(body: Buffer, changes: readonly MemberChange[], anySpelling = true): Edit[] {
  const places = findMembers(body, changes.map(({ path }) => path), anySpelling)
  if (places === null) return []
  const edits: Edit[] = []
  const added = new Map<number, Addition>()
  const blocked = new Map<number, { end: number, members: Record<string, unknown> }>()
  for (const [at, { path, valueFor }] of changes.entries()) {
    const { found, gaps, blocked: instead } = places[at] as MemberPlaces
    const value = valueFor(found.map(({ start, end }) => (end - start > MAX_READ ? LONG : JSON.parse(body.toString('utf8', start, end)) as unknown)))
    if (value === undefined) continue
    edits.push(...replaceValues(found, Buffer.from(JSON.stringify(value))))
    for (const { open, isEmpty, depth } of gaps) {
      const addition = added.get(open) ?? { isEmpty, members: Object.create(null) as Record<string, unknown> }
      added.set(open, addition)
      setIn(addition.members, path.slice(depth), value)
    }
    for (const { start, end, depth } of instead) {
      const replaced = blocked.get(start) ?? { end, members: Object.create(null) as Record<string, unknown> }
      blocked.set(start, replaced)
      setIn(replaced.members, path.slice(depth), value)
    }
  }
  for (const [open, { isEmpty, members }] of added) {
    const text = JSON.stringify(members).slice(1, -1)
    edits.push({ start: open, end: open, bytes: Buffer.from(isEmpty ? text : `${text},`) })
  }
  for (const [start, { end, members }] of blocked) edits.push({ start, end, bytes: Buffer.from(JSON.stringify(members)) })
  return withoutInner(edits)
}

/** Edits that remove members, in every spelling. */
export function removeMembers(body: Buffer, paths: readonly (readonly string[])[]): Edit[] {
  const places = findMembers(body, paths) ?? []
  const byObject = Map.groupBy(places.flatMap(({ found }) => found), ({ open }) => open)
  return withoutInner([...byObject].flatMap(([open, found]) => {
    const each = new Map(found.map(member => [member.keyStart, member]))
    return removals(body, [...each.values()].sort((a, b) => a.keyStart - b.keyStart), open)
  }))
}

interface Addition {
  readonly isEmpty: boolean
  readonly members: Record<string, unknown>
}

function setIn(members: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name = '', ...rest] = path
  if (rest.length === 0) {
    members[name] = value
    return
  }
  const inner = members[name]
  const next = typeof inner === 'object' && inner !== null ? inner as Record<string, unknown> : Object.create(null) as Record<string, unknown>
  members[name] = next
  setIn(next, rest, value)
}

/** Without the edits inside of others: a member can be changed together with the object around it. */
function withoutInner(edits: readonly Edit[]): Edit[] {
  const kept: Edit[] = []
  let end = -1
  for (const edit of edits.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    if (edit.start < end || (edit.start === kept.at(-1)?.start && edit.end === kept.at(-1)?.end && edit.end > edit.start)) continue
    kept.push(edit)
    end = Math.max(end, edit.end)
  }
  return kept
}
