import { workerData } from 'node:worker_threads'
import { serveThread } from '../../base/thread-server.ts'
import { LedgerError, toLedgerFailure } from '../../ledger/failure.ts'
import { billing, unpricedModels } from './billing.ts'
import { budgets, nearBudgets } from './budgets.ts'
import { logPage, logs } from './logs.ts'
import { filters, keyUse } from './names.ts'
import { panel, upstreamFigures } from './panel.ts'
import { ReportError } from './report-error.ts'
import { requestDetails } from './request-details.ts'
import { statement } from './statement.ts'
import { openView } from './view.ts'
import type { OpenView, View } from './view.ts'

/** The reports by name. Arguments and results are copied between threads. */
const REPORTS = {
  panel, upstreamFigures, billing, unpricedModels, budgets, nearBudgets,
  statement, logs, logPage, requestDetails, filters, keyUse,
} as const
export type ReportTable = typeof REPORTS

/** What this thread is asked. */
export interface ReportRequest {
  readonly name: keyof ReportTable
  /** ms since 1970. */
  readonly now: number
  readonly args: readonly unknown[]
}

/** https://www.sqlite.org/rescode.html#error */
const SQLITE_ERROR = 1

let openLedger: OpenView | null = null

serveThread<ReportRequest>(
  ({ name, now, args }) => {
    const report = REPORTS[name] as (view: View, ...args: readonly unknown[]) => unknown
    try {
      return currentView().read(now, view => report(view, ...args))
    } catch (error) {
      throw isLedgerError(error)
        ? new ReportError('unavailable', `the ledger cannot be read: ${toLedgerFailure(error).message}`) : error
    }
  },
  () => openLedger?.close(),
)

/** Opens the ledger again where its path leads to another file: it was moved, or set aside as broken. */
function currentView(): OpenView {
  if (openLedger?.isCurrent() === true) return openLedger
  openLedger?.close()
  openLedger = null
  return openLedger = openView(workerData as string)
}

/** What SQLite says of the file. A generic error of SQLite is about the SQL: a fault of the report. */
function isLedgerError(error: unknown): boolean {
  if (error instanceof LedgerError) return true
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' && error.errcode !== SQLITE_ERROR
}
