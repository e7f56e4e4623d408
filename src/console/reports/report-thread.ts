import { workerData } from 'node:worker_threads'
import { serveThread } from '../../base/threads/thread-server.ts'
import { StoreError } from '../../base/files/store-error.ts'
import { toLedgerFailure } from '../../ledger/ledger-failure.ts'
import { billing, unpricedModels } from './billing.ts'
import { budgets, nearBudgets } from './budgets.ts'
import { ClusterView } from './cluster-view.ts'
import type { ClusterSource } from './cluster-view.ts'
import { logPage, logs } from './logs.ts'
import { panel, upstreamFigures } from './panel.ts'
import { ReportError } from './report-error.ts'
import { requestDetails } from './request-details.ts'
import { statement } from './statement.ts'
import { upstreamReport } from './upstream.ts'
import { filters, keyUse } from './used-names.ts'
import { openView } from './view.ts'
import type { OpenView, View } from './view.ts'

/** The reports by name. Arguments and results are copied between threads. */
const REPORTS = {
  panel, upstreamFigures, upstreamReport, billing, unpricedModels, budgets, nearBudgets,
  statement, logs, logPage, requestDetails, filters, keyUse,
} as const
export type ReportTable = typeof REPORTS

/** A request to this thread. */
export interface ReportRequest {
  readonly name: keyof ReportTable
  /** ms since 1970. */
  readonly now: number
  readonly args: readonly unknown[]
}

/** The parameters of this thread. */
export interface ReportSource {
  /** Path of the ledger. */
  readonly file: string
  /** Where the shared ledger is; null = this gateway's is the only one. */
  readonly cluster: ClusterSource | null
}

/** The reply of this thread. */
export interface ReportResult {
  readonly value: unknown
  /** Why the report covers this gateway only; null = it covers what it should. */
  readonly clusterFailure: string | null
}

/** https://www.sqlite.org/rescode.html#error */
const SQLITE_ERROR = 1

const { file, cluster: source } = workerData as ReportSource
const cluster = source && new ClusterView(source)
let openLedger: OpenView | null = null

serveThread<ReportRequest>(
  ({ name, now, args }): ReportResult => {
    const report = REPORTS[name] as (view: View, ...args: readonly unknown[]) => unknown
    const make = (view: View) => report(view, ...args)
    try {
      const ofCluster = cluster && readCluster(cluster, now, make)
      return { value: ofCluster ? ofCluster.value : currentView().read(now, make), clusterFailure: cluster?.failure ?? null }
    } catch (error) {
      throw isLedgerError(error)
        ? new ReportError('unavailable', `the ledger cannot be read: ${toLedgerFailure(error).message}`) : error
    }
  },
  () => {
    openLedger?.close()
    cluster?.close()
  },
)

/** Opens the ledger again if its path now leads to another file: the old one was moved, or renamed as broken. */
function currentView(): OpenView {
  if (openLedger?.isCurrent() === true) return openLedger
  openLedger?.close()
  openLedger = null
  return openLedger = openView(file)
}

/** This gateway's file has what only this gateway knows; a report of all gateways works without it. */
function readCluster<T>(view: ClusterView, now: number, make: (view: View) => T): { readonly value: T } | null {
  let local: OpenView
  try {
    local = currentView()
  } catch (error) {
    if (!isLedgerError(error)) throw error
    return view.read(now, null, make)
  }
  return local.read(now, ofFile => view.read(now, ofFile, make))
}

/** Is it an error of SQLite about the file? SQLite's generic error is about the SQL: a fault of the report. */
function isLedgerError(error: unknown): boolean {
  if (error instanceof StoreError) return true
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' && error.errcode !== SQLITE_ERROR
}
