import type { Edit } from '../../../src/protocols/json/splice.ts'

/** Are all bytes outside of the edits unchanged and in the original order? */
export function untouched(body: Buffer, edits: readonly Edit[], spliced: Buffer): boolean {
  let from = 0
  let at = 0
  for (const { start, end, bytes } of edits) {
    if (!body.subarray(from, start).equals(spliced.subarray(at, at + start - from))) return false
    at += start - from + bytes.length
    from = end
  }
  return body.subarray(from).equals(spliced.subarray(at))
}
