import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a directory, and those above it that are missing. Node's own way (`recursive`)
 * does not come back where the system says ENOENT though all above is there, as in /proc.
 *
 * @throws the system's error
 */
export function makeDirectory(path: string): void {
  const above = dirname(path)
  if (!existsSync(above)) makeDirectory(above)
  try {
    mkdirSync(path)
  } catch (error) {
    // It was there, or another process was faster.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
}
