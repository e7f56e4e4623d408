import { isObject } from '../../base/is-object.ts'
import { MAX_JSON_DEPTH, measureJson } from '../../base/json-size.ts'

export type JsonObject = { readonly [name: string]: unknown }

/** The value if it is an object; null = it is not. */
export function asObject(value: unknown): JsonObject | null {
  return isObject(value) ? value : null
}

/** The value if it is a list; an empty list if it is not. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The value if it is text; null = it is not. */
export function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** The value if it is a finite number; null = it is not. */
export function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** The value if it is a boolean; null = it is not. */
export function asBoolean(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null
}

/** Removes members that are null or undefined, because they stand for fields that the client did not send. */
export function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null && member !== undefined))
}

/** Parses text; null = the text is not the JSON of an object. */
export function parseObject(text: string): JsonObject | null {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return null // Not JSON.
  }
}

/**
 * Parses arguments that a model generated, for protocols that accept only an object. The arguments may be invalid.
 *
 * @param tooDeep called if the arguments are nested too deeply to be written
 */
export function argumentsObject(text: string, tooDeep = (): JsonObject => ({ arguments: text })): JsonObject {
  if (measureJson(text).depth > MAX_JSON_DEPTH) return tooDeep()
  try {
    const value = JSON.parse(text.trim() === '' ? '{}' : text) as unknown
    return asObject(value) ?? { value }
  } catch {
    return { arguments: text } // The arguments are truncated, or not JSON.
  }
}
