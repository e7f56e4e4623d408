import { isObject } from '../../base/is-object.ts'
import { MAX_JSON_DEPTH, measureJson } from '../../base/json-size.ts'

export type JsonObject = { readonly [name: string]: unknown }

/** null = not an object. */
export function asObject(value: unknown): JsonObject | null {
  return isObject(value) ? value : null
}

/** Empty = not a list. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** null = not text. */
export function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** null = not a finite number. */
export function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** null = not a boolean. */
export function asBoolean(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null
}

/** Removes null and undefined members, which stand for fields that the client did not send. */
export function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null && member !== undefined))
}

/** null = not the JSON of an object. */
export function parseObject(text: string): JsonObject | null {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return null // Not JSON.
  }
}

/**
 * Parses arguments that a model generated, which may be invalid, for protocols that accept only an object.
 *
 * @param tooDeep called for arguments that are too deep to write
 */
export function argumentsObject(text: string, tooDeep = (): JsonObject => ({ arguments: text })): JsonObject {
  if (measureJson(text).depth > MAX_JSON_DEPTH) return tooDeep()
  try {
    const value = JSON.parse(text.trim() === '' ? '{}' : text) as unknown
    return asObject(value) ?? { value }
  } catch {
    return { arguments: text } // Truncated, or not JSON.
  }
}
