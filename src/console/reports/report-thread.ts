import { parentPort, workerData } from 'node:worker_threads'
import { LedgerError, troubleOf } from '../../ledger/failure.ts'
import { ANSWERS } from './report-messages.ts'
import type { Failure, FromReader, ToReader } from './report-messages.ts'
import { ReportError } from './report-error.ts'
import { openView } from './view.ts'
import type { OpenView, View } from './view.ts'

/*
 * The reading thread: link.ts starts it with the ledger's path, and sends it
 * questions, which it answers one after the other.
 */

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

/** https://www.sqlite.org/rescode.html#error */
const SQLITE_ERROR = 1

let open: OpenView | null = null

port.on('message', (message: ToReader) => {
  if (message === 'close') {
    open?.close()
    port.close()
    return
  }
  const { id, subject, now, asked } = message
  const answer = ANSWERS[subject] as (view: View, ...asked: readonly unknown[]) => unknown
  try {
    port.postMessage({ id, answer: current().read(now, view => answer(view, ...asked)) } satisfies FromReader)
  } catch (error) {
    port.postMessage({ id, failure: failureOf(error) } satisfies FromReader)
  }
})

/** The ledger may have been moved, or set aside, and another one begun. */
function current(): OpenView {
  if (open !== null && open.isCurrent()) return open
  open?.close()
  open = null
  return open = openView(workerData as string)
}

function failureOf(error: unknown): Failure {
  if (error instanceof ReportError) return { code: error.code, message: error.message, field: error.field }
  if (error instanceof LedgerError || isTrouble(error)) {
    const message = `the ledger cannot be read: ${troubleOf(error).message}`
    return { code: 'unavailable', message, field: null }
  }
  const message = error instanceof Error ? error.stack ?? error.message : String(error)
  return { code: 'fault', message, field: null }
}

/** What SQLite says of the file; the rest is said of our SQL, and is a fault. */
function isTrouble(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error)) return false
  return typeof error.errcode === 'number' && error.errcode !== SQLITE_ERROR
}
