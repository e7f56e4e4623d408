import { statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Is there such a file?
 * @throws the system's error where that is unknown, as in a directory that is closed to this user
 */
export function fileExists(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false }) !== undefined
}

/** @returns device and inode of a file, which tell whether a path still leads to it; null when there is none */
export function fileIdentity(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`
}

/**
 * What is there instead of a file; null = a file, nothing, or it cannot be read. Opening a pipe would wait
 * for a writer without end.
 */
export function nonFileKind(path: string): 'a directory' | 'a pipe, a socket or a device' | null {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined || stats.isFile()) return null
    return stats.isDirectory() ? 'a directory' : 'a pipe, a socket or a device'
  } catch {
    return null // opening it reports the reason
  }
}

/** The part of a file's path that is there and no directory, so that nothing can be below it; null = none is. */
export function nonDirectoryAncestor(file: string): string | null {
  for (let path = dirname(file); path !== dirname(path); path = dirname(path)) {
    try {
      const stats = statSync(path, { throwIfNoEntry: false })
      if (stats !== undefined) return stats.isDirectory() ? null : path
    } catch {
      // What is above it may be the file.
    }
  }
  return null
}
