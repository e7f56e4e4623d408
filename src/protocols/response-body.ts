import { JsonCursor } from './shared/cursor.ts'
import { withoutByteOrderMark } from './shared/json-text.ts'
import type { EndpointName } from './shared/names.ts'
import { readUsage } from './shared/readers.ts'
import type { ReportedUsage } from './shared/readers.ts'
import { tierIn, normaliseTier } from './shared/service-tier.ts'
import { Figures, isObject } from './shared/usage-figures.ts'
import { blankUsage } from './shared/usage.ts'

const USAGE = Buffer.from('usage')
const USAGE_METADATA = Buffer.from('usageMetadata')
const SERVICE_TIER = Buffer.from('service_tier')
const ERROR = Buffer.from('error')
const CHOICES = Buffer.from('choices')
const BASE_RESP = Buffer.from('base_resp')
const STATUS = Buffer.from('status')
const BACKGROUND = Buffer.from('background')
const DATA = Buffer.from('data')
const DURATION = Buffer.from('duration')

/**
 * Reads the usage out of a whole, successful, non-streamed answer. The body is
 * walked at its top level, and only the usage object is parsed: a body of
 * hundreds of megabytes of base64 costs about as much as searching it once.
 *
 * @param body decompressed; a generate stream as one JSON array will do too
 * @returns null when the answer tells nothing, such as one that is not JSON
 */
export function readBodyUsage(endpoint: EndpointName, body: Buffer): ReportedUsage | null {
  const cursor = new JsonCursor(withoutByteOrderMark(body))
  switch (endpoint) {
    case 'generate.content':
    case 'generate.stream':
    case 'generate.embed':
    case 'generate.batch_embed':
      return readUsage(endpoint, lastMetadata(cursor))
    case 'images.generations':
    case 'images.edits':
      return readImageBody(endpoint, cursor)
    case 'audio.transcriptions':
    case 'audio.translations':
      return readTranscriptBody(endpoint, cursor)
    default:
      return readUsage(endpoint, member(cursor, USAGE))
  }
}

/** The tier that a whole answer says it was served in, in lower case: beside the usage, or inside. */
export function readBodyTier(body: Buffer): string | null {
  const cursor = new JsonCursor(withoutByteOrderMark(body))
  if (cursor.isArray()) return tierIn(lastMetadata(cursor))
  const [tier, usage, metadata] = members(
    cursor, [SERVICE_TIER, parsedValue], [USAGE, parsedValue], [USAGE_METADATA, parsedValue],
  )
  return normaliseTier(tier) ?? tierIn(usage) ?? tierIn(metadata)
}

/**
 * Is a whole answer the report of an error, whatever its status said? The
 * responses protocol has `error: null` in every good answer, OpenRouter an error in
 * the first choice, and MiniMax, in every answer, a `base_resp` whose code is 0 if it is good.
 */
export function isErrorBody(body: Buffer): boolean {
  const [error, base, isChosen] = members(
    new JsonCursor(withoutByteOrderMark(body)), [ERROR, parsedValue], [BASE_RESP, parsedValue], [CHOICES, firstChoiceHasError],
  )
  if (isChosen === true || (error ?? null) !== null) return true
  return isObject(base) && typeof base.status_code === 'number' && base.status_code !== 0
}

function firstChoiceHasError(cursor: JsonCursor): boolean {
  if (!cursor.beginArray()) {
    cursor.skip()
    return false
  }
  let told: unknown
  let isFirst = true
  while (cursor.nextElement()) {
    if (isFirst && cursor.isObject()) told = member(cursor, ERROR)
    else cursor.skip()
    isFirst = false
  }
  return (told ?? null) !== null
}

/** Is a whole answer only a receipt for one that is made in the background (responses, interactions)? */
export function isQueuedResponse(body: Buffer): boolean {
  const status = member(new JsonCursor(withoutByteOrderMark(body)), STATUS)
  return status === 'queued' || status === 'in_progress'
}

/** Does a request ask for one that is made in the background, whoever waits for it? */
export function requestsBackground(request: Buffer): boolean {
  return member(new JsonCursor(withoutByteOrderMark(request)), BACKGROUND) === true
}

/** What is made of the value that the cursor is at, which is passed; undefined = nothing. */
type ValueReader = (cursor: JsonCursor) => unknown

const parsedValue: ValueReader = cursor => (cursor.skip() ? cursor.parsed() : undefined)

/** The value of a top-level member, the last of that name; undefined when there is none. */
function member(cursor: JsonCursor, name: Buffer): unknown {
  return members(cursor, [name, parsedValue])[0]
}

/** The same of several members, or what is made of them, in the order of their names. */
function members(cursor: JsonCursor, ...wanted: readonly (readonly [name: Buffer, take: ValueReader])[]): unknown[] {
  const values: unknown[] = wanted.map(() => undefined)
  if (!cursor.beginObject()) return values
  while (cursor.nextMember()) {
    let at = wanted.length - 1
    while (at >= 0 && !cursor.keyIs(wanted[at]![0])) at--
    if (at < 0) {
      cursor.skip()
      continue
    }
    const value = wanted[at]![1](cursor)
    if (value !== undefined) values[at] = value
  }
  return values
}

function lastMetadata(cursor: JsonCursor): unknown {
  if (!cursor.beginArray()) return member(cursor, USAGE_METADATA)
  let last: unknown
  while (cursor.nextElement()) {
    if (!cursor.isObject()) cursor.skip()
    else last = member(cursor, USAGE_METADATA) ?? last
  }
  return last
}

/** The pictures are counted, whether or not their tokens are reported. */
function readImageBody(endpoint: EndpointName, cursor: JsonCursor): ReportedUsage | null {
  const [usage, images] = members(cursor, [USAGE, parsedValue], [DATA, countElements])
  const reading = readUsage(endpoint, usage)
  if (typeof images !== 'number') return reading
  return { usage: { ...(reading?.usage ?? blankUsage()), images }, suspect: reading?.suspect ?? false }
}

function countElements(cursor: JsonCursor): number | undefined {
  if (!cursor.beginArray()) {
    cursor.skip()
    return undefined
  }
  let count = 0
  while (cursor.nextElement()) {
    if (cursor.skip()) count++
  }
  return count
}

/** verbose_json of models that report no usage has the duration in seconds. */
function readTranscriptBody(endpoint: EndpointName, cursor: JsonCursor): ReportedUsage | null {
  const [usage, duration] = members(cursor, [USAGE, parsedValue], [DURATION, parsedValue])
  const reading = readUsage(endpoint, usage)
  if (reading || duration === undefined) return reading
  const figures = new Figures()
  // vLLM tells it as a text.
  const seconds = typeof duration === 'string' && /^\d+(\.\d+)?$/.test(duration) ? Number(duration) : duration
  return { usage: { ...blankUsage(), seconds: figures.seconds(seconds) }, suspect: figures.suspect }
}
