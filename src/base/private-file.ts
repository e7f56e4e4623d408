import { chmodSync, closeSync, fchownSync, lchownSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Of each file that the gateway writes, and of each directory that it makes: for its user alone, whatever the umask is. */
export const FILE_MODE = 0o600
export const DIRECTORY_MODE = 0o700

/**
 * Makes the file, empty, for its owner alone, where there is none; what SQLite puts
 * beside it gets the same mode. There is no moment in which somebody else could open it.
 */
export function createPrivateFile(file: string): void {
  let made: number
  try {
    made = openSync(file, 'wx', FILE_MODE)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
    throw error
  }
  giveToOwnerOf(dirname(file), (uid, gid) => fchownSync(made, uid, gid))
  closeSync(made)
  // What is left of a file that was deleted would be taken for the new one's.
  for (const part of ['-wal', '-shm']) rmSync(file + part, { force: true })
}

/** Gives a directory that root has made to the owner of the one above. */
export function giveDirectoryToOwnerAbove(path: string): void {
  giveToOwnerOf(dirname(path), (uid, gid) => lchownSync(path, uid, gid))
}

/**
 * To the owner of the directory: a gateway that runs as another user than root could not read what root made
 * for it. SQLite does the same with what it puts beside a file.
 */
function giveToOwnerOf(directory: string, chown: (uid: number, gid: number) => void): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(directory)
  try {
    chown(uid, gid)
  } catch {
    // Root of a container may not, nor may root on some file systems: then it stays root's.
  }
}

/**
 * Changes the mode of a file or directory that an older version, or somebody else, has made.
 *
 * @returns the mode before; null = it was right
 * @throws the system's error
 */
export function correctMode(path: string, mode: number): number | null {
  const before = statSync(path).mode & 0o777
  // Windows has no modes.
  if (before === mode || process.platform === 'win32') return null
  chmodSync(path, mode)
  return before
}
