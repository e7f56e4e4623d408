/** Replaces body[start, end) with `bytes`. If `start` equals `end`, the bytes are inserted. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly bytes: Uint8Array
}

/**
 * Applies edits in any order to a copy of the body. Insertions at the same offset keep their order. Without edits, returns the body itself.
 * @throws RangeError if two edits overlap, or an edit is outside the body
 */
export function spliceBytes(body: Buffer, edits: readonly Edit[]): Buffer {
  if (edits.length === 0) return body
  const pieces: Uint8Array[] = []
  let at = 0
  for (const { start, end, bytes } of edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    if (!(start >= at && end >= start && end <= body.length)) {
      throw new RangeError(`the edit of bytes ${start} to ${end} overlaps another or leaves the body`)
    }
    pieces.push(body.subarray(at, start), bytes)
    at = end
  }
  pieces.push(body.subarray(at))
  return Buffer.concat(pieces)
}

export function replaceValues(values: readonly { start: number; end: number }[], bytes: Uint8Array): Edit[] {
  return values.map(({ start, end }) => ({ start, end, bytes }))
}

/** Inserts `member` as the first member of an object. */
export function insertion({ open, empty }: { open: number; empty: boolean }, member: Buffer): Edit {
  const bytes = empty ? member : Buffer.concat([member, Buffer.from(',')])
  return { start: open, end: open, bytes }
}
