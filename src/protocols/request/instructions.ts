import { JsonCursor } from '../json/cursor.ts'
import { scanJson, type Field } from '../json/json-scan.ts'
import { insertion, type Edit } from '../json/splice.ts'

export interface AddedTexts {
  readonly prepend: string | null
  readonly append: string | null
}

/** Where a value stands. */
export type Range = Pick<Field, 'start' | 'end'>

/** The members of this name, wherever the body repeats it; null = the body is no object. */
export function membersNamed(body: Buffer, name: string): { readonly fields: readonly Field[], add(value: unknown): Edit } | null {
  const scanned = scanJson(body, [name])
  if (!scanned.ok || scanned.members === null) return null
  const { members } = scanned
  return {
    fields: scanned.fields.get(name) ?? [],
    add: value => insertion(members, Buffer.from(`${JSON.stringify(name)}:${JSON.stringify(value)}`)),
  }
}

/** Adds text to a string or to a list of parts. @param partOf a part with this text @returns null = the value is neither */
export function addToText(body: Buffer, { start, end }: Range, { prepend, append }: AddedTexts, partOf: (text: string) => unknown): Edit[] | null {
  if (body[start] === 0x22) {
    const before = prepend === null ? [] : [{ start: start + 1, end: start + 1, bytes: inString(`${prepend}\n\n`) }]
    const after = append === null ? [] : [{ start: end - 1, end: end - 1, bytes: inString(`\n\n${append}`) }]
    return [...before, ...after]
  }
  if (body[start] !== 0x5b) return null
  let first: Range | null = null
  let last: Range | null = null
  for (const element of elementsOf(body, { start, end })) {
    first ??= element
    last = element
  }
  if (first === null || last === null) {
    const parts = [prepend, append].filter(text => text !== null).map(partOf)
    return [{ start: start + 1, end: start + 1, bytes: Buffer.from(JSON.stringify(parts).slice(1, -1)) }]
  }
  const before = prepend === null ? [] : [insertBefore(first, partOf(prepend))]
  const after = append === null ? [] : [insertAfter(last, partOf(append))]
  return [...before, ...after]
}

export function joined({ prepend, append }: AddedTexts): string {
  return [prepend, append].filter(text => text !== null).join('\n\n')
}

/** The elements of an array, one after the other: a list of all can take much memory. */
export function* elementsOf(body: Buffer, { start, end }: Range): Generator<Range, void, undefined> {
  const cursor = new JsonCursor(body, start, end)
  if (!cursor.beginArray()) return
  while (cursor.nextElement() && cursor.skip()) yield { start: cursor.valueStart, end: cursor.valueEnd }
}

/** The last member of this name in an object; null = none, or the value is no object. */
export function memberIn(body: Buffer, { start, end }: Range, name: string): Range | null {
  const cursor = new JsonCursor(body, start, end)
  const bytes = Buffer.from(name)
  let found: Range | null = null
  if (!cursor.beginObject()) return null
  while (cursor.nextMember()) {
    const isNamed = cursor.keyIs(bytes)
    if (!cursor.skip()) break
    if (isNamed) found = { start: cursor.valueStart, end: cursor.valueEnd }
  }
  return found
}

export function insertBefore({ start }: Range, element: unknown): Edit {
  return { start, end: start, bytes: Buffer.from(`${JSON.stringify(element)},`) }
}

function insertAfter({ end }: Range, element: unknown): Edit {
  return { start: end, end, bytes: Buffer.from(`,${JSON.stringify(element)}`) }
}

function inString(text: string): Buffer {
  return Buffer.from(JSON.stringify(text).slice(1, -1))
}
