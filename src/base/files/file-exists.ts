import { statSync } from 'node:fs'
import { dirname } from 'node:path'

/** @throws the system's error if it is unknown whether the file exists, for example without access to the directory */
export function fileExists(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false }) !== undefined
}

/** Device and inode of a file, which show whether a path still leads to that file; null = no such file. */
export function fileIdentity(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`
}

/** The kind of a path that is not a file; null = a file, nothing, or unreadable. Opening a pipe would wait for a writer forever. */
export function nonFileKind(path: string): 'a directory' | 'a pipe, a socket or a device' | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined || stats.isFile()) return null
    return stats.isDirectory() ? 'a directory' : 'a pipe, a socket or a device'
  } catch {
    return null // opening it reports the reason
  }
}

/** The part of the path that exists and is not a directory, so that nothing can be below it; null = none. */
export function nonDirectoryAncestor(file: string): string | null {
  for (let path = dirname(file); path !== dirname(path); path = dirname(path)) {
    try {
      const stats = statSync(path, { throwIfNoEntry: false })
      if (stats !== undefined) return stats.isDirectory() ? null : path
    } catch {
      // The parent of an unreadable path can be the file.
    }
  }
  return null
}
