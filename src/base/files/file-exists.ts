import { statSync } from 'node:fs'
import { dirname } from 'node:path'

/** @throws the system's error if the existence of the file cannot be determined, for example without access to the directory */
export function fileExists(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false }) !== undefined
}

/** Device and inode of a file; null = no such file. If both are unchanged, the path still leads to the same file. */
export function fileIdentity(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`
}

/**
 * The kind of a path that is not a regular file; null = a regular file, nothing, or unreadable. Not opened, because opening a pipe would
 * wait for a writer.
 */
export function nonFileKind(path: string): 'a directory' | 'a pipe, a socket or a device' | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined || stats.isFile()) return null
    return stats.isDirectory() ? 'a directory' : 'a pipe, a socket or a device'
  } catch {
    return null // opening the path reports the reason
  }
}

/** The nearest ancestor of the path that exists and is not a directory, so that the file cannot exist; null = none. */
export function nonDirectoryAncestor(file: string): string | null {
  for (let path = dirname(file); path !== dirname(path); path = dirname(path)) {
    try {
      const stats = statSync(path, { throwIfNoEntry: false })
      if (stats !== undefined) return stats.isDirectory() ? null : path
    } catch {
      // The parent of an unreadable path may be a file.
    }
  }
  return null
}
