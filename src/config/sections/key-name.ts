import { isWellFormed } from '../../base/secrets/key-format.ts'
import { RESERVED_NAME_MESSAGE, isReservedName } from './keys.ts'

const MAX_NAME_LENGTH = 128
/** Matches a visible character: some letters and marks are invisible (Unicode standard, section 5.21). */
const VISIBLE_CHARACTER = /[^\s\p{Default_Ignorable_Code_Point}]/u

/**
 * Checks the name of a new key. gateway.yaml must accept the name, people must see it, and a path of the console must be able to contain
 * it.
 * @returns the rest of a sentence that begins with the name; null = valid
 */
export function keyNameError(name: string): string | null {
  if (isWellFormed(name)) return 'is a key; give the key a name, which everybody may see'
  if (isReservedName(name)) return `cannot be: ${RESERVED_NAME_MESSAGE}`
  // oxlint-disable-next-line no-control-regex -- those are the ones to refuse
  if (name === '' || name.length > MAX_NAME_LENGTH || /[\x00-\x1f\x7f]/.test(name)) {
    return `needs 1 to ${MAX_NAME_LENGTH} characters, and no control characters`
  }
  if (!VISIBLE_CHARACTER.test(name)) return 'needs something that can be seen'
  // The store would change such a name, and a URL of the console cannot contain it.
  if (!name.isWellFormed()) return 'holds half a character (a lone surrogate)'
  // A URL parser resolves dot segments, even if they are escaped (URL standard, "double-dot path segment").
  return name === '.' || name === '..' ? 'cannot be one or two dots' : null
}
