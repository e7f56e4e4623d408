import { decode } from './query.ts'

/** Characters of the shortest key that is searched for: a shorter word may have another meaning in a header. */
const MIN_LENGTH = 8
/** From this length on, a key does not occur in other text by chance. */
const MIN_LENGTH_IN_TEXT = 16

/**
 * Does a value of the request hold one of the keys that the client presented? A key of less than 16 characters must
 * be the whole value, or all of it but a scheme.
 *
 * @param keys as they were presented, valid or not
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
 * Removes from a query the parameters whose value or name holds one of the keys; the order and the bytes of the rest
 * stay.
 *
 * @param query with its question mark, or empty
 */
export function withoutKeys(query: string, keys: readonly string[]): string {
  if (query === '' || keys.length === 0) return query
  const pairs = query.slice(1).split('&')
  const rest = pairs.filter(pair => pair.split('=').every(part => !holdsKey(decode(part.replaceAll('+', ' ')), keys)))
  if (rest.length === pairs.length) return query
  return rest.length === 0 ? '' : `?${rest.join('&')}`
}
