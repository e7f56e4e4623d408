import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'

/**
 * Copies the write-ahead log into the database in a thread of its own: rows of requests must not wait for the disk (fsync). So a power
 * failure loses about a second of rows. workerData is the ledger's path; any message ends the thread after a last checkpoint.
 */

const CHECKPOINT_INTERVAL_MS = 1000
/** Pages of 4 KiB. */
const MAX_LOG_PAGES = 8192
/** ms that a reader can block the writer while a long log is restarted. */
const BUSY_TIMEOUT_MS = 20

const url = pathToFileURL(workerData as string)
// A deleted file must not be created again, empty.
url.searchParams.set('mode', 'rw')
const db = new DatabaseSync(url, { timeout: BUSY_TIMEOUT_MS })
db.exec('PRAGMA synchronous = NORMAL')
const passive = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')
const restart = db.prepare('PRAGMA wal_checkpoint(RESTART)')

const timer = setInterval(() => {
  const result = passive.get()
  const log = Number(result?.['log'])
  // Under steady load, new batches would keep the log from ever starting over: the writer waits for the short rest.
  if (log > MAX_LOG_PAGES && result?.['checkpointed'] !== log) restart.get()
}, CHECKPOINT_INTERVAL_MS)

parentPort?.once('message', () => {
  clearInterval(timer)
  passive.get()
  db.close()
})
