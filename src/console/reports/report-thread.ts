import { parentPort, workerData } from 'node:worker_threads'
import { LedgerError, toLedgerFailure } from '../../ledger/failure.ts'
import { ReportError } from './report-error.ts'
import { REPORTS } from './report-messages.ts'
import type { ReportFailure, ReportThreadResponse, ReportThreadRequest } from './report-messages.ts'
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

port.on('message', (message: ReportThreadRequest) => {
  if (message === 'close') {
    open?.close()
    port.close()
    return
  }
  const { id, subject, now, asked } = message
  const answer = REPORTS[subject] as (view: View, ...asked: readonly unknown[]) => unknown
  try {
    port.postMessage({ id, answer: current().read(now, view => answer(view, ...asked)) } satisfies ReportThreadResponse)
  } catch (error) {
    port.postMessage({ id, failure: failureOf(error) } satisfies ReportThreadResponse)
  }
})

/** The ledger may have been moved, or set aside, and another one begun. */
function current(): OpenView {
  if (open !== null && open.isCurrent()) return open
  open?.close()
  open = null
  return open = openView(workerData as string)
}

function failureOf(error: unknown): ReportFailure {
  if (error instanceof ReportError) return { code: error.code, message: error.message, field: error.field }
  if (error instanceof LedgerError || isDatabaseError(error)) {
    const message = `the ledger cannot be read: ${toLedgerFailure(error).message}`
    return { code: 'unavailable', message, field: null }
  }
  const message = error instanceof Error ? error.stack ?? error.message : String(error)
  return { code: 'fault', message, field: null }
}

/** What SQLite says of the file; the rest is said of our SQL, and is a fault. */
function isDatabaseError(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error)) return false
  return typeof error.errcode === 'number' && error.errcode !== SQLITE_ERROR
}
