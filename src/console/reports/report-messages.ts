import { billing, unpricedModels } from './billing.ts'
import { budgets, nearBudgets } from './budgets.ts'
import { logPage, logs } from './logs.ts'
import { filters, keyUse } from './names.ts'
import { panel, upstreamFigures } from './panel.ts'
import type { ReportError } from './report-error.ts'
import { requestDetails } from './request-details.ts'
import { statement } from './statement.ts'

/** All that the reading thread can be asked. What goes in and comes out is copied between threads. */
export const REPORTS = {
  panel, upstreamFigures, billing, unpricedModels, budgets, nearBudgets,
  statement, logs, logPage, requestDetails, filters, keyUse,
} as const

export type ReportName = keyof typeof REPORTS

export type ReportArgs<S extends ReportName> =
  (typeof REPORTS)[S] extends (view: never, ...asked: infer A) => unknown ? A : never

export type ReportResult<S extends ReportName> = ReturnType<(typeof REPORTS)[S]>

/** To the thread: a question, or that no more will come. */
export type ReportThreadRequest = ReportRequest | 'close'

export interface ReportRequest {
  readonly id: number
  readonly subject: ReportName
  /** ms since 1970. */
  readonly now: number
  readonly asked: readonly unknown[]
}

export type ReportThreadResponse =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly failure: ReportFailure }

export interface ReportFailure {
  readonly code: ReportError['code'] | 'fault'
  readonly message: string
  readonly field: string | null
}
