import type { Problem } from '../api/shapes.ts'

type Code = Problem['code']

const STATUSES: Readonly<Record<Code, number>> = {
  bad_request: 400,
  not_logged_in: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_many: 429,
  unavailable: 503,
  internal: 500,
}

/** Why an operation failed. `message` is for the user: it says what to change. */
export class ConsoleProblem extends Error {
  override readonly name = 'ConsoleProblem'
  readonly code: Code
  /** The wrong member of the request. */
  readonly field: string | null
  /** Seconds until the client may try again. */
  readonly retryAfter: number | null

  constructor(code: Code, message: string, detail: { field?: string; retryAfter?: number } = {}) {
    super(message)
    this.code = code
    this.field = detail.field ?? null
    this.retryAfter = detail.retryAfter ?? null
  }

  get status(): number {
    return STATUSES[this.code]
  }

  /** In the format of the API. */
  get body(): Problem {
    return { code: this.code, message: this.message, ...this.field !== null && { field: this.field } }
  }
}

/** The code of an HTTP status. */
export function codeOf(status: number): Code {
  const found = Object.entries(STATUSES).find(([, known]) => known === status)
  return (found?.[0] as Code | undefined) ?? (status < 500 ? 'bad_request' : 'internal')
}
