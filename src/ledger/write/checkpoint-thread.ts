import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'

/**
 * Copies the write-ahead log into the database in a thread of its own: the copy waits for
 * the disk (fsync), and rows of requests must not wait for that. As a side effect, a
 * power failure loses about a second of rows, not more.
 *
 * workerData is the ledger's path. Any message ends the thread after a last checkpoint.
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
  // New batches keep the log from starting over. Under steady load that would last forever, so the
  // writer waits for the short rest of the log.
  if (log > MAX_LOG_PAGES && result?.['checkpointed'] !== log) restart.get()
}, CHECKPOINT_INTERVAL_MS)

parentPort?.once('message', () => {
  clearInterval(timer)
  passive.get()
  db.close()
})
