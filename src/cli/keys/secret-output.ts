import { fstatSync, statSync, writeSync } from 'node:fs'
import { devNull } from 'node:os'
import type { Command } from 'commander'
import { EXIT } from '../../process/exit.ts'

/** Ends the command with exit code 2 if nobody can read its output. */
export function requireReader(command: Command): void {
  if (!isDiscarded(process.stdout.fd)) return
  command.error('error: standard output is closed, or /dev/null, and the key is shown only once; write it to a terminal or a file', { exitCode: EXIT.usage })
}

/**
 * Prints a secret synchronously, because it cannot be shown again.
 * @param onUnread called if printing fails; reverts the change, and ends the command
 */
export async function printSecret(secret: string, onUnread: (why: string) => void | Promise<void>): Promise<void> {
  try {
    writeSync(process.stdout.fd, `${secret}\n`)
  } catch (error) {
    await onUnread((error as Error).message)
  }
}

/** Tells whether the output is discarded. Node opens the null device if a descriptor is closed. */
function isDiscarded(fd: number): boolean {
  const { rdev } = fstatSync(fd)
  return rdev !== 0 && rdev === statSync(devNull).rdev
}
