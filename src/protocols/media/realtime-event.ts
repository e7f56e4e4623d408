import { isObject } from '../../base/is-object.ts'
import type { JsonObject } from '../neutral/json.ts'
import { parseJsonRange } from '../json/cursor.ts'
import { Figures } from '../usage/usage-figures.ts'

const SETTINGS = new Set(['session.created', 'session.updated', 'transcription_session.created', 'transcription_session.updated'])

/** The settings of the session; null = the message has none. */
export function settingsIn(type: string, message: Buffer): JsonObject | null {
  return SETTINGS.has(type) ? objectIn(eventIn(message), 'session') : null
}

/** The message as an object; `{}` = not an object. */
export function eventIn(message: Buffer): JsonObject {
  return objectOf(parseJsonRange(message, 0, message.length))
}

/** The member as an object; `{}` = not an object. */
export function objectIn(parent: JsonObject, name: string): JsonObject {
  return objectOf(parent[name])
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** The member as a count; null = not a count. */
export function countIn(parent: JsonObject, name: string): number | null {
  return new Figures().count(parent[name])
}
