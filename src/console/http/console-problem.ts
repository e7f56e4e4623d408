import type { Problem } from '../api/shapes.ts'

type Code = Problem['code']

const STATUSES: Readonly<Record<Code, number>> = {
  bad_request: 400, not_logged_in: 401, forbidden: 403, not_found: 404, conflict: 409, too_many: 429, unavailable: 503, internal: 500,
}

/** Thrown if an operation is refused or fails. `message` tells the user what to change. */
export class ConsoleProblem extends Error {
  override readonly name = 'ConsoleProblem'
  readonly code: Code
  /** The member of the request that is wrong; null = the problem is not about a single member. */
  readonly field: string | null
  /** Seconds after which the client can try again; null = unknown. */
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

  get body(): Problem {
    return { code: this.code, message: this.message, ...this.field !== null && { field: this.field } }
  }
}

export function codeOf(status: number): Code {
  const found = Object.entries(STATUSES).find(([, known]) => known === status)
  return (found?.[0] as Code | undefined) ?? (status < 500 ? 'bad_request' : 'internal')
}
