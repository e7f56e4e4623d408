import { billing, unpricedModels } from './billing.ts'
import { budgets, nearBudgets } from './budgets.ts'
import { logPage, logs } from './logs.ts'
import { filters, keyUse } from './names.ts'
import { panel, upstreamFigures } from './panel.ts'
import type { ReportError } from './report-error.ts'
import { statement } from './statement.ts'
import { stories } from './request-details.ts'

/** All that the reading thread can be asked. What goes in and comes out is copied between threads. */
export const ANSWERS = {
  panel, upstreamFigures, billing, unpricedModels, budgets, nearBudgets,
  statement, logs, logPage, stories, filters, keyUse,
} as const

export type Subject = keyof typeof ANSWERS

export type AskedOf<S extends Subject> =
  (typeof ANSWERS)[S] extends (view: never, ...asked: infer A) => unknown ? A : never

export type AnswerOf<S extends Subject> = ReturnType<(typeof ANSWERS)[S]>

/** To the thread: a question, or that no more will come. */
export type ToReader = Question | 'close'

export interface Question {
  readonly id: number
  readonly subject: Subject
  /** ms since 1970. */
  readonly now: number
  readonly asked: readonly unknown[]
}

export type FromReader =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly failure: Failure }

export interface Failure {
  readonly code: ReportError['code'] | 'fault'
  readonly message: string
  readonly field: string | null
}
