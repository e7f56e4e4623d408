import type { Problem } from '../api/shapes.ts'

/** Becomes a `Problem`. `not_yet` becomes `unavailable`, but is not logged: it passes by itself. */
export class ReportError extends Error {
  override readonly name = 'ReportError'
  readonly code: Extract<Problem['code'], 'bad_request' | 'forbidden' | 'not_found' | 'unavailable'> | 'not_yet'
  /** Wrong member of the query; null = the error is not about one member. */
  readonly field: string | null

  constructor(code: ReportError['code'], message: string, field: string | null = null) {
    super(message)
    this.code = code
    this.field = field
  }
}
