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

/** The tier in which a whole response says it was served, in lower case: beside the usage, or inside. */
export function readBodyTier(body: Buffer): string | null {
  const cursor = new JsonCursor(withoutByteOrderMark(body))
  if (cursor.isArray()) return tierIn(lastMetadata(cursor))
  const [tier, usage, metadata] = members(
    cursor, [SERVICE_TIER, parsedValue], [USAGE, parsedValue], [USAGE_METADATA, parsedValue],
  )
  return normaliseTier(tier) ?? tierIn(usage) ?? tierIn(metadata)
}

/**
 * Is a whole response the report of an error, whatever its status? In the responses protocol every success has
 * `error: null`, and a failure may have it too. OpenRouter puts an error into the first choice. MiniMax has a
 * `base_resp` in every response, with code 0 for success.
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

/** Is a whole response only the receipt for one that is made in the background (responses, interactions)? */
export function isQueuedResponse(body: Buffer): boolean {
  const status = member(new JsonCursor(withoutByteOrderMark(body)), STATUS)
  return status === 'queued' || status === 'in_progress'
}

/** Does the request ask for a background response, which is also generated without a client? */
export function requestsBackground(request: Buffer): boolean {
  return member(new JsonCursor(withoutByteOrderMark(request)), BACKGROUND) === true
}
