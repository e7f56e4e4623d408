import type { Problem } from '../api/shapes.ts'

/** An error of a report. It becomes a `Problem`. The code `not_yet` becomes `unavailable`, but is not logged, because it is temporary. */
export class ReportError extends Error {
  override readonly name = 'ReportError'
  readonly code: Extract<Problem['code'], 'bad_request' | 'forbidden' | 'not_found' | 'unavailable'> | 'not_yet'
  /** The member of the query that is wrong; null = the error is not about a single member. */
  readonly field: string | null

  constructor(code: ReportError['code'], message: string, field: string | null = null) {
    super(message)
    this.code = code
    this.field = field
  }
}
