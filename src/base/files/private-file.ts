import { chmodSync, closeSync, fchownSync, lchownSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Mode of each file that the gateway writes: only its user has access, whatever the umask is. */
export const FILE_MODE = 0o600
export const DIRECTORY_MODE = 0o700

/**
 * Creates an empty file for its owner only, if it is missing. The files that SQLite puts
 * beside it get the same mode. At no moment can another user open it.
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
  // The rest of a deleted file would be read as part of the new one.
  for (const part of ['-wal', '-shm']) rmSync(file + part, { force: true })
}

/** Gives a directory that root created to the owner of its parent. */
export function giveDirectoryToOwnerAbove(path: string): void {
  giveToOwnerOf(dirname(path), (uid, gid) => lchownSync(path, uid, gid))
}

/**
 * Gives a file to the owner of its directory: a gateway without root could not read a file that root created
 * for it. SQLite does the same with its own files.
 */
function giveToOwnerOf(directory: string, chown: (uid: number, gid: number) => void): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(directory)
  try {
    chown(uid, gid)
  } catch {
    // Root may lack this right in a container or on some file systems: then root stays the owner.
  }
}

/**
 * Corrects the mode of a file or directory that an older version or another user created.
 *
 * @returns the mode before; null = it was correct
 * @throws the system's error
 */
export function correctMode(path: string, mode: number): number | null {
  const before = statSync(path).mode & 0o777
  // Windows has no modes.
  if (before === mode || process.platform === 'win32') return null
  chmodSync(path, mode)
  return before
}
