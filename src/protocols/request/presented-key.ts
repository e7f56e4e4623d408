import { decode } from './query.ts'

/** Minimum length of a key to search for. A shorter text may have another meaning in a header. */
const MIN_LENGTH = 8
/** Minimum length of a key to search for inside other text: a key of this length does not occur there by chance. */
const MIN_LENGTH_IN_TEXT = 16

/**
 * Tells whether a value contains a key that the client sent, valid or not. A short key must be the whole value, or everything after a
 * scheme.
 */
export function holdsKey(value: string, keys: readonly string[]): boolean {
  for (const key of keys) {
    if (value.length < key.length || key.length < MIN_LENGTH) continue
    if (key.length >= MIN_LENGTH_IN_TEXT ? value.includes(key) : isAllOf(value, key)) return true
  }
  return false
}

function isAllOf(value: string, key: string): boolean {
  return value === key || (value.endsWith(key) && value.indexOf(' ') === value.length - key.length - 1)
}

/**
 * Removes parameters that contain one of the keys in their name or value. The other parameters stay unchanged.
 * @param query with `?`, or empty
 */
export function withoutKeys(query: string, keys: readonly string[]): string {
  if (query === '' || keys.length === 0) return query
  const pairs = query.slice(1).split('&')
  const rest = pairs.filter(pair => pair.split('=').every(part => !holdsKey(decode(part.replaceAll('+', ' ')), keys)))
  if (rest.length === pairs.length) return query
  return rest.length === 0 ? '' : `?${rest.join('&')}`
}
