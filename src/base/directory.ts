import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DIRECTORY_MODE, giveDirectoryToOwnerAbove } from './private-file.ts'

/**
 * Makes a directory, and those above it that are missing, for their owner alone. Node's own way (`recursive`)
 * does not come back where the system says ENOENT though all above is there, as in /proc.
 *
 * @throws the system's error
 */
export function makeDirectory(path: string): void {
  const above = dirname(path)
  if (!existsSync(above)) makeDirectory(above)
  try {
    mkdirSync(path, { mode: DIRECTORY_MODE })
    giveDirectoryToOwnerAbove(path)
  } catch (error) {
    // It was there, or another process was faster.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
}
