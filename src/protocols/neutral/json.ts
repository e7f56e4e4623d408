import { isObject } from '../../base/is-object.ts'
import { MAX_JSON_DEPTH, measureJson } from '../../base/json-size.ts'

/** Values of parsed JSON, read with care: a client or an upstream may send anything. */
export type JsonObject = { readonly [name: string]: unknown }

/** null = it is no object. */
export function asObject(value: unknown): JsonObject | null {
  return isObject(value) ? value : null
}

/** Empty where it is no list. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** null = it is no text. */
export function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** null = it is no finite number. */
export function asNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

/** null = it is neither true nor false. */
export function asBoolean(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null
}

/** The object without members that are null or undefined: a client that said nothing sends nothing. */
export function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null && member !== undefined))
}

/** JSON of an object as its value. null = it is none. */
export function parseObject(text: string): JsonObject | null {
  try {
    return asObject(JSON.parse(text))
  } catch {
    // It is no JSON.
    return null
  }
}

/**
 * What a model generated as arguments of a tool, for protocols that take an object alone: it may be broken.
 *
 * @param tooDeep what becomes of arguments that are too deep to be written: otherwise the text
 */
export function argumentsObject(text: string, tooDeep = (): JsonObject => ({ arguments: text })): JsonObject {
  if (measureJson(text).depth > MAX_JSON_DEPTH) return tooDeep()
  try {
    const value = JSON.parse(text.trim() === '' ? '{}' : text) as unknown
    return asObject(value) ?? { value }
  } catch {
    // It is cut off, or no JSON.
    return { arguments: text }
  }
}
