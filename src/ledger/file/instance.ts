import { readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { toLedgerFailure } from '../ledger-failure.ts'
import { acquireLock, isLocked } from './lock.ts'

/*
 * A process that writes to a ledger holds a lock beside it: the process is alive as long
 * as the lock is held. Process ids are no substitute (containers share volumes, but not
 * ids), nor is a heartbeat (a process that was paused for a while is not dead).
 */

const LOCK_INFIX = '-live-'
const LOCK_TIMEOUT_MS = 1000

function lockFile(ledger: string, instance: string): string {
  return ledger + LOCK_INFIX + instance
}

/**
 * Marks an instance as alive until this process, or this thread, ends.
 * @param ledger path of the ledger's file
 * @param instance unique name of the process, valid in a file name
 * @returns ends the mark
 */
export function lockInstance(ledger: string, instance: string): () => void {
  return acquireLock(lockFile(ledger, instance), LOCK_TIMEOUT_MS)
}

/** @returns false when the process of the instance has certainly ended. Needs no write permission. */
export function isAlive(ledger: string, instance: string): boolean {
  return isLocked(lockFile(ledger, instance))
}

/**
 * Removes the locks of killed processes.
 * @param ledger path of the ledger's file
 */
export function removeStaleLocks(ledger: string): void {
  const prefix = basename(ledger) + LOCK_INFIX
  for (const name of readdirSync(dirname(ledger))) {
    if (!name.startsWith(prefix)) continue
    const instance = name.slice(prefix.length)
    if (isAlive(ledger, instance)) continue
    try {
      acquireLock(lockFile(ledger, instance), 0)()
    } catch (error) {
      // Another process removes locks too.
      if (toLedgerFailure(error).code !== 'locked') throw error
    }
  }
}
