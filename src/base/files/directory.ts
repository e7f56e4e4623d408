import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DIRECTORY_MODE, giveDirectoryToOwnerAbove } from './private-file.ts'

/**
 * Creates a directory and its parents, with access for their owner only. Node's option `recursive` can loop forever, for example in /proc.
 * @throws system errors
 */
export function makeDirectory(path: string): void {
  const above = dirname(path)
  if (!existsSync(above)) makeDirectory(above)
  try {
    mkdirSync(path, { mode: DIRECTORY_MODE })
    giveDirectoryToOwnerAbove(path)
  } catch (error) {
    // No error if the directory exists: another process may have created it in the meantime.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
}
