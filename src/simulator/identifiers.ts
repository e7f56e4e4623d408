import { randomBytes } from 'node:crypto'

/** Creates identifiers: the prefix, an id of this source, and an increasing number. They have the length of the vendors' identifiers. */
export function identifiers(): (prefix: string) => string {
  const source = randomBytes(8).toString('hex')
  let issued = 0
  return prefix => `${prefix}${source}${(++issued).toString(36).padStart(8, '0')}`
}
