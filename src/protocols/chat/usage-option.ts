import { MAX_DUPLICATES, scanJson, type Field, type ValidJson } from '../json/json-scan.ts'
import type { UsageOption } from '../endpoint/protocol.ts'
import { insertion, replaceValues, type Edit } from '../json/splice.ts'
import { WatchedKeys } from '../json/watched-keys.ts'
import { UsageChunkFilter } from './usage-chunk-filter.ts'

const USAGE_KEYS = new WatchedKeys(['include_usage'])
const TRUE = Buffer.from('true')
const INCLUDE_USAGE = Buffer.from('"include_usage":true')
const OPTIONS = Buffer.from('{"include_usage":true}')
const STREAM_OPTIONS = Buffer.from('"stream_options":{"include_usage":true}')

/** Upstreams report the usage of a stream only if the request asks for it. */
export const USAGE_OPTION: UsageOption = { edits: withIncludeUsage, createFilter: reader => new UsageChunkFilter(reader) }

/**
 * @returns the edits that set `stream_options.include_usage` to true in a body whose scan watched `stream_options`; null = none. If a key
 * is repeated, all of its values are set, because parsers differ in which value they use. A `stream_options` that is neither an object nor
 * null is left for the upstream to refuse.
 */
export function withIncludeUsage(body: Buffer, scanned: ValidJson): Edit[] | null {
  if (scanned.members === null) return null
  const options = scanned.fields.get('stream_options')
  const edits = options?.flatMap(field => optionEdits(body, field)) ?? [insertion(scanned.members, STREAM_OPTIONS)]
  return edits.length === 0 ? null : edits
}

function optionEdits(body: Buffer, options: Field): Edit[] {
  if (options.type === 'null') return replaceValues([options], OPTIONS)
  if (options.type !== 'object') return []
  const inner = scanJson(body.subarray(options.start, options.end), USAGE_KEYS)
  if (!inner.ok || inner.members === null) throw new TypeError('the scan is of another body')
  const { start } = options
  const given = inner.fields.get('include_usage')
  // The scan records a limited number of values. At the limit, the body may have more values than recorded.
  if (given && given.length > MAX_DUPLICATES) return []
  const edits = given === undefined
    ? [insertion(inner.members, INCLUDE_USAGE)]
    : replaceValues(given.filter(value => value.type !== 'true'), TRUE)
  return edits.map(edit => ({ start: start + edit.start, end: start + edit.end, bytes: edit.bytes }))
}
