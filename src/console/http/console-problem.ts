import type { Problem } from '../api/shapes.ts'

type Code = Problem['code']

const STATUSES: Readonly<Record<Code, number>> = {
  bad_request: 400, not_logged_in: 401, forbidden: 403, not_found: 404, conflict: 409, too_many: 429, unavailable: 503, internal: 500,
}

/** `message` tells the user what to change. */
export class ConsoleProblem extends Error {
  override readonly name = 'ConsoleProblem'
  readonly code: Code
  /** Wrong member of the request; null = the problem is not about one member. */
  readonly field: string | null
  /** Seconds until the client can try again; null = no such time. */
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
