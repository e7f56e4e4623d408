import { isWellFormed } from '../base/key-format.ts'
import { RESERVED_NAME_MESSAGE, isReservedName } from './keys.ts'

const MAX_NAME_LENGTH = 128
/** Some letters and marks have no shape at all (Unicode standard, section 5.21). */
const VISIBLE_CHARACTER = /[^\s\p{Default_Ignorable_Code_Point}]/u

/**
 * What is wrong with the name of a key that is to be made: gateway.yaml would not take it, nobody would see
 * it, or no path of the console could lead to it.
 *
 * @returns the rest of a sentence about it; null = nothing
 */
export function keyNameError(name: string): string | null {
  if (isWellFormed(name)) return 'is a key; give the key a name, which everybody may see'
  if (isReservedName(name)) return `cannot be: ${RESERVED_NAME_MESSAGE}`
  // oxlint-disable-next-line no-control-regex -- those are the ones to refuse
  if (name === '' || name.length > MAX_NAME_LENGTH || /[\x00-\x1f\x7f]/.test(name)) {
    return `needs 1 to ${MAX_NAME_LENGTH} characters, and no control characters`
  }
  if (!VISIBLE_CHARACTER.test(name)) return 'needs something that can be seen'
  // The store would keep another name, and no address of the console can hold this one.
  if (!name.isWellFormed()) return 'holds half a character (a lone surrogate)'
  // In a path they lead elsewhere, however they are escaped (URL standard, "double-dot path segment").
  return name === '.' || name === '..' ? 'cannot be one or two dots' : null
}
