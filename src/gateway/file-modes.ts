import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Logger } from 'pino'
import { isGatewayFile } from '../base/files/gateway-files.ts'
import { messageOf } from '../base/message-of.ts'
import { DIRECTORY_MODE, FILE_MODE, correctMode } from '../base/files/private-file.ts'

/**
 * Removes the access of other users to the gateway's files, and to a directory that contains only such files. Older versions created them
 * with the umask of the process.
 */
export function correctFileModes(ledgerFile: string, log: Logger): void {
  const directory = dirname(ledgerFile)
  const names = namesIn(directory)
  const own = names.filter(name => isGatewayFile(name, basename(ledgerFile)))
  for (const name of own) correct(join(directory, name), FILE_MODE, log)
  if (own.length > 0 && own.length === names.length) correct(directory, DIRECTORY_MODE, log)
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    // The directory does not exist yet. Problems with it are reported when it is created.
    return []
  }
}

function correct(path: string, mode: number, log: Logger): void {
  try {
    const before = correctMode(path, mode)
    if (before !== null) log.warn({ file: path, before: octal(before), mode: octal(mode) }, 'a mode was corrected: other users of this machine had rights to this file')
  } catch (error) {
    // Ignore a file that another process has deleted in the meantime, such as a lock.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    log.warn({ file: path, mode: octal(mode), why: messageOf(error) }, 'the mode of this file cannot be corrected: other users of this machine can have rights to it; set the mode yourself')
  }
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
