import { isObject } from '../../base/is-object.ts'
import { JsonCursor } from '../json/cursor.ts'
import { withoutByteOrderMark } from '../json/json-text.ts'
import { lastMetadata, member, members, parsedValue } from '../json/read-members.ts'
import { tierIn, normaliseTier } from './service-tier.ts'

const USAGE = Buffer.from('usage')
const USAGE_METADATA = Buffer.from('usageMetadata')
const SERVICE_TIER = Buffer.from('service_tier')
const ERROR = Buffer.from('error')
const CHOICES = Buffer.from('choices')
const BASE_RESP = Buffer.from('base_resp')
const STATUS = Buffer.from('status')
const OBJECT = Buffer.from('object')
const BACKGROUND = Buffer.from('background')

/** The service tier of a whole response, in lower case; null = none. The tier is a top-level member, or a member of the usage. */
export function readBodyTier(body: Buffer): string | null {
  const cursor = new JsonCursor(withoutByteOrderMark(body))
  if (cursor.isArray()) return tierIn(lastMetadata(cursor))
  const [tier, usage, metadata] = members(cursor, [SERVICE_TIER, parsedValue], [USAGE, parsedValue], [USAGE_METADATA, parsedValue])
  return normaliseTier(tier) ?? tierIn(usage) ?? tierIn(metadata)
}

/**
 * Tells whether a whole response reports an error, whatever its HTTP status is. In the responses protocol, `error: null` is no error.
 * OpenRouter reports errors in the first choice. MiniMax always sends a `base_resp`, with code 0 for success.
 */
export function isErrorBody(body: Buffer): boolean {
  const [error, base, isChosen, status, object] = members(
    new JsonCursor(withoutByteOrderMark(body)),
    [ERROR, parsedValue], [BASE_RESP, parsedValue], [CHOICES, firstChoiceHasError], [STATUS, parsedValue], [OBJECT, parsedValue],
  )
  if (isChosen === true || (error ?? null) !== null || (status === 'failed' && object === 'response')) return true
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

/** Tells whether a whole response only confirms that the response is generated in the background (responses, interactions). */
export function isQueuedResponse(body: Buffer): boolean {
  const status = member(new JsonCursor(withoutByteOrderMark(body)), STATUS)
  return status === 'queued' || status === 'in_progress'
}

/** Tells whether the request asks for a background response, which is generated even if the client disconnects. */
export function requestsBackground(request: Buffer): boolean {
  return member(new JsonCursor(withoutByteOrderMark(request)), BACKGROUND) === true
}
