export type Json = Readonly<Record<string, unknown>>

const EMPTY: Json = Object.freeze({})

/** The value if it is an object; otherwise an empty object. */
export function record(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : EMPTY
}

/**
 * A member of an object for a Google API, which accepts both spellings: the Python client writes most inner names as `include_thoughts`,
 * and the other clients write `includeThoughts`.
 */
export function member(of: Json, name: string): unknown {
  return of[name] ?? of[name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)]
}

/** The value if it is an array; otherwise an empty array. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The value if it is a string; otherwise the fallback. */
export function string(value: unknown, fallback = ''): string {
  return typeof value === 'string' ? value : fallback
}

/** The value if it is a whole number of at least 0, or the digits of such a number in a form field; otherwise the fallback. */
export function count<T>(value: unknown, fallback: T): number | T {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : fallback
}
