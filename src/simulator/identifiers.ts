import { randomBytes } from 'node:crypto'

/**
 * A source of identifiers: the prefix, the id of this source, and an increasing
 * number. They are as long as those of the vendors.
 */
export function identifiers(): (prefix: string) => string {
  const source = randomBytes(8).toString('hex')
  let issued = 0
  return prefix => `${prefix}${source}${(++issued).toString(36).padStart(8, '0')}`
}
