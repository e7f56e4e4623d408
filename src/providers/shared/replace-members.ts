import type { Field, ValidJson } from '../../protocols/json/json-scan.ts'
import { spliceBytes, type Edit } from '../../protocols/json/splice.ts'

const NOTHING = Buffer.alloc(0)
const COMMA = 0x2c

/** Removes and adds members without changing other bytes. @param added at least one member as JSON text, added at the end */
export function replaceMembers(
  body: Buffer, { close, empty }: NonNullable<ValidJson['members']>, removed: readonly Field[], added: readonly string[],
): Buffer {
  const text = added.join(',')
  const isLastRemoved = removed.some(({ end }) => afterSpace(body, end) === close)
  const edits: Edit[] = removed.map(field => removal(body, field))
  // Add at the end. If the last member is removed, the comma before it remains, and no other comma is needed.
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
