import { workerData } from 'node:worker_threads'
import { serveThread } from '../../base/threads/thread-server.ts'
import { StoreError } from '../../base/files/store-error.ts'
import { toLedgerFailure } from '../../ledger/ledger-failure.ts'
import { billing, unpricedModels } from './billing.ts'
import { budgets, nearBudgets } from './budgets.ts'
import { ClusterView, type ClusterSource } from './cluster-view.ts'
import { logPage, logs } from './logs.ts'
import { panel, upstreamFigures } from './panel.ts'
import { ReportError } from './report-error.ts'
import { requestDetails } from './request-details.ts'
import { statement } from './statement.ts'
import { upstreamReport } from './upstream.ts'
import { filters, keyUse } from './used-names.ts'
import { openView, type OpenView, type View } from './view.ts'

/** The reports. Their arguments and results are copied between threads. */
const REPORTS = {
  panel, upstreamFigures, upstreamReport, billing, unpricedModels, budgets, nearBudgets,
  statement, logs, logPage, requestDetails, filters, keyUse,
} as const
export type ReportTable = typeof REPORTS

export interface ReportRequest {
  readonly name: keyof ReportTable
  /** Time of the report, in ms since 1970. */
  readonly now: number
  readonly args: readonly unknown[]
}

export interface ReportSource {
  /** Path of the ledger. */
  readonly file: string
  /** null = no other gateway shares the ledger. */
  readonly cluster: ClusterSource | null
}

export interface ReportResult {
  readonly value: unknown
  /** Why the report includes only this gateway; null = it includes all gateways that share the ledger. */
  readonly clusterFailure: string | null
}

/** SQLite's generic error (https://www.sqlite.org/rescode.html#error). */
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
      throw isLedgerError(error) ? new ReportError('unavailable', `the ledger cannot be read: ${toLedgerFailure(error).message}`) : error
    }
  },
  () => {
    openLedger?.close()
    cluster?.close()
  },
)

/** The open ledger. It is opened again if the path leads to another file, because the old file was moved, or was renamed as corrupt. */
function currentView(): OpenView {
  if (openLedger?.isCurrent() === true) return openLedger
  openLedger?.close()
  openLedger = null
  return openLedger = openView(file)
}

/** Runs a report on all gateways. The local file adds what only this gateway knows; the report also works without it. */
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

/** Tells whether the error is caused by the file. SQLite's generic error is about the SQL, and so a fault of the report. */
function isLedgerError(error: unknown): boolean {
  if (error instanceof StoreError) return true
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' && error.errcode !== SQLITE_ERROR
}
