import { statSync } from 'node:fs'

/**
 * Is there such a file?
 * @throws the system's error where that cannot be told, as of a directory that is closed to this user
 */
export function isThere(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false }) !== undefined
}
