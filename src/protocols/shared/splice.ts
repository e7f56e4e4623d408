import { MAX_DUPLICATES } from './json-members.ts'
import { scanJson } from './json-scan.ts'
import type { Field, ValidJson } from './json-scan.ts'
import { WatchedKeys } from './watched-keys.ts'

/** Puts `bytes` in the place of body[start, end); start = end inserts. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly bytes: Uint8Array
}

const USAGE_KEYS = new WatchedKeys(['include_usage'])
const TRUE = Buffer.from('true')
const INCLUDE_USAGE = Buffer.from('"include_usage":true')
const OPTIONS = Buffer.from('{"include_usage":true}')
const STREAM_OPTIONS = Buffer.from('"stream_options":{"include_usage":true}')

/**
 * The body with the edits made, in a buffer of its own; the body itself when
 * there are none. The order of the edits does not matter, except that insertions
 * at one place stand in the order given. Throws RangeError when two overlap or
 * one lies outside the body.
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

/** Edits that put `bytes` in the place of each of the values. */
export function replaceValues(values: readonly { start: number; end: number }[], bytes: Uint8Array): Edit[] {
  return values.map(({ start, end }) => ({ start, end, bytes }))
}

/**
 * The edits that make `stream_options.include_usage` true in a chat body whose
 * scan watched `stream_options`; null when there is nothing to do. Where a key is
 * given twice, each of them is made true, because parsers differ in which one
 * counts. A `stream_options` that is neither object nor null, or a root that is
 * no object, is left for the upstream to refuse.
 */
export function withIncludeUsage(body: Buffer, scanned: ValidJson): Edit[] | null {
  if (scanned.members === null) return null
  const options = scanned.fields.get('stream_options')
  const edits = options === undefined
    ? [insertion(scanned.members, STREAM_OPTIONS)]
    : options.flatMap(field => optionEdits(body, field))
  return edits.length === 0 ? null : edits
}

function optionEdits(body: Buffer, options: Field): Edit[] {
  if (options.type === 'null') return replaceValues([options], OPTIONS)
  if (options.type !== 'object') return []
  const inner = scanJson(body.subarray(options.start, options.end), USAGE_KEYS)
  if (!inner.ok || inner.members === null) throw new TypeError('the scan is of another body')
  const { start } = options
  const given = inner.fields.get('include_usage')
  // Not all of them are known.
  if (given && given.length > MAX_DUPLICATES) return []
  const edits = given === undefined
    ? [insertion(inner.members, INCLUDE_USAGE)]
    : replaceValues(given.filter(value => value.type !== 'true'), TRUE)
  return edits.map(edit => ({ start: start + edit.start, end: start + edit.end, bytes: edit.bytes }))
}

/** Makes `member` the first of an object. */
export function insertion({ open, empty }: { open: number; empty: boolean }, member: Buffer): Edit {
  const bytes = empty ? member : Buffer.concat([member, Buffer.from(',')])
  return { start: open, end: open, bytes }
}
