import { decode } from './query.ts'

/** Minimum length of a key that is searched for: a shorter word may have another meaning in a header. */
const MIN_LENGTH = 8
/** From this length on, a key does not occur in other text by chance. */
const MIN_LENGTH_IN_TEXT = 16

/** Does a value hold a key that the client presented, valid or not? A short key must be the whole value, or all behind a scheme. */
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

/** Removes parameters with one of the keys in name or value; order and bytes of the rest stay. @param query with `?`, or empty */
export function withoutKeys(query: string, keys: readonly string[]): string {
  if (query === '' || keys.length === 0) return query
  const pairs = query.slice(1).split('&')
  const rest = pairs.filter(pair => pair.split('=').every(part => !holdsKey(decode(part.replaceAll('+', ' ')), keys)))
  if (rest.length === pairs.length) return query
  return rest.length === 0 ? '' : `?${rest.join('&')}`
}
