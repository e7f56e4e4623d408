export type Json = Readonly<Record<string, unknown>>

const EMPTY: Json = Object.freeze({})

/** The value as an object; an empty one when it is anything else. */
export function record(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : EMPTY
}

/**
 * A member of a message of Google's, whose JSON takes either spelling: the Python client writes most inner
 * names as `include_thoughts`, the others `includeThoughts`.
 */
export function member(of: Json, name: string): unknown {
  return of[name] ?? of[name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)]
}

/** The value as an array; an empty one when it is anything else. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The value as a string, or the fallback. */
export function string(value: unknown, fallback = ''): string {
  return typeof value === 'string' ? value : fallback
}

/** The value as a whole number >= 0, or the fallback. Takes a form field's digits too. */
export function count<T>(value: unknown, fallback: T): number | T {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : fallback
}
