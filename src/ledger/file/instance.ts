import { readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { toLedgerFailure } from '../ledger-failure.ts'
import { acquireLock, isLocked } from './lock.ts'

/*
 * A process that writes to a ledger holds a lock on a file in the same directory until the process ends, which shows other processes that
 * it is alive. Process ids cannot show this across containers that share a volume. Without a heartbeat, a process may only be paused.
 */

const LOCK_INFIX = '-live-'
const LOCK_TIMEOUT_MS = 1000

function lockFile(ledger: string, instance: string): string {
  return ledger + LOCK_INFIX + instance
}

/** Marks an instance as alive until this process or thread ends. @param instance unique, valid in a file name @returns removes the mark */
export function lockInstance(ledger: string, instance: string): () => void {
  return acquireLock(lockFile(ledger, instance), LOCK_TIMEOUT_MS)
}

/** @returns false = the process has certainly ended. Needs no write permission */
export function isAlive(ledger: string, instance: string): boolean {
  return isLocked(lockFile(ledger, instance))
}

/** Removes the locks of killed processes. */
export function removeStaleLocks(ledger: string): void {
  const prefix = basename(ledger) + LOCK_INFIX
  for (const name of readdirSync(dirname(ledger))) {
    if (!name.startsWith(prefix)) continue
    const instance = name.slice(prefix.length)
    if (isAlive(ledger, instance)) continue
    try {
      acquireLock(lockFile(ledger, instance), 0)()
    } catch (error) {
      // Another process may be removing the same lock.
      if (toLedgerFailure(error).code !== 'locked') throw error
    }
  }
}
