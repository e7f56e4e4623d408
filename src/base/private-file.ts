import { closeSync, fchownSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes the file, empty, for its owner alone, where there is none; what SQLite puts
 * beside it gets the same mode. There is no moment in which somebody else could open it.
 */
export function createPrivateFile(file: string): void {
  let made: number
  try {
    made = openSync(file, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw error
  }
  if (process.getuid?.() === 0) chownToDirectoryOwner(made, dirname(file))
  closeSync(made)
  // What is left of a file that was deleted would be taken for the new one's.
  for (const part of ['-wal', '-shm']) rmSync(file + part, { force: true })
}

/**
 * To the owner of the directory: a gateway that runs as another user than root could not read what root made
 * for it. SQLite does the same with what it puts beside a file.
 */
function chownToDirectoryOwner(fd: number, directory: string): void {
  const { uid, gid } = statSync(directory)
  try {
    fchownSync(fd, uid, gid)
  } catch {
    // Root of a container may not, nor may root on some file systems: then it stays root's.
  }
}
