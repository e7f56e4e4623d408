import { statSync } from 'node:fs'
import { LedgerError } from './trouble.ts'

/**
 * SQLite waits without end for who writes to a pipe, and says of a directory only that it cannot be opened.
 * @param file path; that there is nothing, or what may not be looked at, is not told here
 * @throws {LedgerError} `unwritable`
 */
export function refuseWhatIsNoFile(file: string): void {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (stats === undefined || stats.isFile()) return
  throw new LedgerError('unwritable', stats.isDirectory()
    ? 'this is a directory; ledger.file takes the path of a file in it, such as gateway.db'
    : 'this is a pipe, a socket or a device; ledger.file takes the path of a file')
}
