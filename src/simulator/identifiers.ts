import { randomBytes } from 'node:crypto'

/**
 * A source of identifiers: the prefix, what sets this source apart from others,
 * and a number that only grows. They have the length of the vendors' own.
 */
export function identifiers(): (prefix: string) => string {
  const source = randomBytes(8).toString('hex')
  let issued = 0
  return prefix => `${prefix}${source}${(++issued).toString(36).padStart(8, '0')}`
}
