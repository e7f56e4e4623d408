import { scanJson, type Field } from './json-scan.ts'
import { insertion, replaceValues, type Edit } from './splice.ts'

const COMMA = 0x2c
const BLANK = 0x20

/**
 * Edits that set and remove members of a JSON object. Of duplicate names, all are changed.
 * @param members values as JSON.stringify takes them; null removes the member
 * @returns no edits if the text is not an object
 */
export function memberEdits(body: Buffer, members: ReadonlyMap<string, unknown>): Edit[] {
  const scanned = scanJson(body, [...members.keys()])
  if (!scanned.ok || scanned.members === null) return []
  const edits: Edit[] = []
  const added: string[] = []
  const removed: Field[] = []
  for (const [name, value] of members) {
    const fields = scanned.fields.get(name) ?? []
    if (value === null) removed.push(...fields)
    else if (fields.length > 0) edits.push(...replaceValues(fields, Buffer.from(JSON.stringify(value))))
    else added.push(`${JSON.stringify(name)}:${JSON.stringify(value)}`)
  }
  if (added.length > 0) edits.push(insertion(scanned.members, Buffer.from(added.join(','))))
  return [...edits, ...removals(body, removed.sort((a, b) => a.keyStart - b.keyStart), scanned.members.open)]
}

/** @param fields members of one object, sorted @param open offset behind the brace of the object */
export function removals(body: Buffer, fields: readonly Pick<Field, 'keyStart' | 'end'>[], open: number): Edit[] {
  const edits: { start: number, end: number, next: number }[] = []
  for (const { keyStart, end } of fields) {
    const after = skipBlanks(body, end)
    const isLast = body[after] !== COMMA
    const next = isLast ? end : skipBlanks(body, after + 1)
    const before = edits.at(-1)
    // Members that stand side by side are one edit.
    if (before !== undefined && before.next === keyStart) Object.assign(before, { end: isLast ? end : after + 1, next })
    else edits.push({ start: keyStart, end: isLast ? end : after + 1, next })
    const edit = edits.at(-1)
    // Behind the last member there is no comma, so the one in front of the removed members goes.
    if (isLast && edit !== undefined) edit.start = commaBefore(body, edit.start, open)
  }
  return edits.map(({ start, end }) => ({ start, end, bytes: Buffer.alloc(0) }))
}

function skipBlanks(body: Buffer, at: number): number {
  let pos = at
  while (pos < body.length && body[pos]! <= BLANK) pos++
  return pos
}

function commaBefore(body: Buffer, at: number, open: number): number {
  let pos = at - 1
  while (pos >= open && body[pos]! <= BLANK) pos--
  return pos >= open && body[pos] === COMMA ? pos : at
}
