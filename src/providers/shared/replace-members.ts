import type { Field, ValidJson } from '../../protocols/json/json-scan.ts'
import { spliceBytes, type Edit } from '../../protocols/json/splice.ts'

const NOTHING = Buffer.alloc(0)
const COMMA = 0x2c

/** Removes and adds members; other bytes stay. @param members the inside of the object @param added at the end, at least one, as JSON */
export function replaceMembers(
  body: Buffer, { close, empty }: NonNullable<ValidJson['members']>, removed: readonly Field[], added: readonly string[],
): Buffer {
  const text = added.join(',')
  const isLastRemoved = removed.some(({ end }) => afterSpace(body, end) === close)
  const edits: Edit[] = removed.map(field => removal(body, field))
  // After the last member; if that one is removed, its comma is already there.
  edits.push({ start: close, end: close, bytes: Buffer.from(isLastRemoved || empty ? text : `,${text}`) })
  return spliceBytes(body, edits)
}

/** Removes a member with the comma after it. */
function removal(body: Buffer, { keyStart, end }: Field): Edit {
  const next = afterSpace(body, end)
  return { start: keyStart, end: body[next] === COMMA ? next + 1 : end, bytes: NOTHING }
}

/** Index of the next byte that is not JSON white space. */
function afterSpace(body: Buffer, from: number): number {
  let at = from
  while (body[at] === 0x20 || body[at] === 0x09 || body[at] === 0x0a || body[at] === 0x0d) at++
  return at
}
