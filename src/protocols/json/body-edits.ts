import { scanJson, type Field } from './json-scan.ts'
import { replaceValues, type Edit } from './splice.ts'

/** Finds members of the object at body[start, end). Of duplicate names, the last value counts, as in parsers. */
export function fieldsOf(body: Buffer, names: readonly string[], start = 0, end = body.length): Map<string, Field> {
  const scanned = scanJson(body.subarray(start, end), names)
  const found = new Map<string, Field>()
  if (!scanned.ok) return found
  for (const [name, fields] of scanned.fields) {
    const field = fields.at(-1)
    if (field) found.set(name, { ...field, start: field.start + start, end: field.end + start })
  }
  return found
}

export function appendToList(body: Buffer, list: Field | undefined, value: unknown): Edit[] {
  if (list?.type !== 'array') return []
  const at = list.end - 1
  const isEmpty = body.toString('utf8', list.start + 1, at).trim() === ''
  return [{ start: at, end: at, bytes: Buffer.from(`${isEmpty ? '' : ','}${JSON.stringify(value)}`) }]
}

/** Subtracts tokens from limits. At least 1 remains. Values that are not a count stay unchanged: `-1`, `0`, numbers above 2^53. */
export function reduceLimits(body: Buffer, limits: readonly (Field | undefined)[], spent: number): Edit[] {
  if (spent === 0) return []
  return limits.flatMap(limit => {
    if (limit?.type !== 'number') return []
    const count = Math.floor(Number(body.toString('utf8', limit.start, limit.end)))
    if (!Number.isSafeInteger(count) || count < 1) return []
    return replaceValues([limit], Buffer.from(String(Math.max(1, count - spent))))
  })
}
