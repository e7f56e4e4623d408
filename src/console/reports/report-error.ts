import type { Problem } from '../api/shapes.ts'

/**
 * Why a report is not to be had; `code` and `field` are for the console's Problem, where `not_yet` is
 * `unavailable`: it passes by itself, and no operator has to look at it.
 */
export class ReportError extends Error {
  override readonly name = 'ReportError'
  readonly code: Extract<Problem['code'], 'bad_request' | 'forbidden' | 'not_found' | 'unavailable'> | 'not_yet'
  /** The member of the query that is wrong. */
  readonly field: string | null

  constructor(code: ReportError['code'], message: string, field: string | null = null) {
    super(message)
    this.code = code
    this.field = field
  }
}
