import type { Problem } from '../api/shapes.ts'

/**
 * Why a report failed. `code` and `field` become the console's Problem. There, `not_yet` is `unavailable`: it passes
 * by itself, and the operator need not act.
 */
export class ReportError extends Error {
  override readonly name = 'ReportError'
  readonly code: Extract<Problem['code'], 'bad_request' | 'forbidden' | 'not_found' | 'unavailable'> | 'not_yet'
  /** The wrong member of the query. */
  readonly field: string | null

  constructor(code: ReportError['code'], message: string, field: string | null = null) {
    super(message)
    this.code = code
    this.field = field
  }
}
