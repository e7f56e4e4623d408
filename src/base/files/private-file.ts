import { chmodSync, closeSync, fchownSync, lchownSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Mode of each file that the gateway writes. Only the gateway's user has access; the umask has no effect. */
export const FILE_MODE = 0o600
export const DIRECTORY_MODE = 0o700

/** Creates an empty file if it is missing. At no moment can another user open it. SQLite gives its additional files the same mode. */
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
  // Remove remains of a deleted file, because SQLite would read them as a part of the new file.
  for (const part of ['-wal', '-shm']) rmSync(file + part, { force: true })
}

export function giveDirectoryToOwnerAbove(path: string): void {
  giveToOwnerOf(dirname(path), (uid, gid) => lchownSync(path, uid, gid))
}

/**
 * Gives a path that root created to the owner of the directory, because a gateway without root could not read it. SQLite does the same with
 * its own files.
 */
function giveToOwnerOf(directory: string, chown: (uid: number, gid: number) => void): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(directory)
  try {
    chown(uid, gid)
  } catch {
    // Root may lack this right in a container or on some file systems. Then root stays the owner.
  }
}

/**
 * Corrects the mode of a file or directory that an older version or another user created.
 * @returns the previous mode; null = the mode was correct
 */
export function correctMode(path: string, mode: number): number | null {
  const before = statSync(path).mode & 0o777
  // Windows has no file modes.
  if (before === mode || process.platform === 'win32') return null
  chmodSync(path, mode)
  return before
}
