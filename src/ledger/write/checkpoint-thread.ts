import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'

/**
 * Copies the write-ahead log into the database in a separate thread, because rows of requests must not wait for the disk (fsync). A power
 * failure loses the rows of about a second. `workerData` is the ledger's path. Any message ends the thread after a last checkpoint.
 */

const CHECKPOINT_INTERVAL_MS = 1000
/** Pages of 4 KiB in the log, above which the writer must wait until the log is restarted. */
const MAX_LOG_PAGES = 8192
/** Milliseconds that a reader can block the writer while a long log is restarted. */
const BUSY_TIMEOUT_MS = 20

const url = pathToFileURL(workerData as string)
// Use the mode `rw`, which does not create a deleted file again.
url.searchParams.set('mode', 'rw')
const db = new DatabaseSync(url, { timeout: BUSY_TIMEOUT_MS })
db.exec('PRAGMA synchronous = NORMAL')
const passive = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
const restart = db.prepare('PRAGMA wal_checkpoint(RESTART)')

const timer = setInterval(() => {
  const result = passive.get()
  const log = Number(result?.['log'])
  // Restart a long log while the writer waits, because under steady load the log would never be copied completely.
  if (log > MAX_LOG_PAGES && result?.['checkpointed'] !== log) restart.get()
}, CHECKPOINT_INTERVAL_MS)

parentPort?.once('message', () => {
  clearInterval(timer)
  passive.get()
  db.close()
})
