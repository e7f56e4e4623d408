import type { Api, BodyOf, OperationName, ParamsOf, QueryOf, ResponseOf } from '../../api/table.ts'

const BASE = '/console/api'

/** The parts of a request to the console's API; those that the operation does not have are left out. */
export type OperationInput<N extends OperationName> =
  (QueryOf<N> extends undefined ? unknown : { readonly query?: QueryOf<N> }) &
  (ParamsOf<N> extends undefined ? unknown : { readonly params: ParamsOf<N> }) &
  (BodyOf<N> extends undefined ? unknown : { readonly body: BodyOf<N> })

/** What the parts are while they are written out. */
interface Parts {
  readonly query?: Readonly<Record<string, unknown>>
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface SendOptions {
  /** The session's, for requests that change something. */
  readonly csrf?: string | null
  /** Asked by the page on its own: it does not keep the session from running out. */
  readonly live?: boolean
  readonly signal?: AbortSignal
}

export type ProblemCode =
  | 'bad_request'
    | 'not_logged_in'
    | 'forbidden'
    | 'not_found'
    | 'conflict'
    | 'too_many'
    | 'unavailable'
    | 'internal'
  /** The gateway did not answer, or something between did. */
  | 'unreachable'

/** The console's API refused, or could not be asked. The message is for people. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ProblemCode
  /** The HTTP status; 0 where there was no answer. */
  readonly status: number
  /** The member of the request that is wrong. */
  readonly field: string | null

  constructor(code: ProblemCode, message: string, status: number, field: string | null = null) {
    super(message)
    this.code = code
    this.status = status
    this.field = field
  }
}

/**
 * Asks the console's API.
 * @param name - the operation, as in the table: `GET /panel`
 * @param ask - its parameters, query and body
 * @returns the answer, in the shape that the table says
 * @throws {ApiError} when it is refused or there is no answer
 */
export async function send<N extends OperationName>(
  name: N, ask: OperationInput<N>, manner: SendOptions = {},
): Promise<ResponseOf<N>> {
  const parts = ask as Parts
  const [method] = splitName(name)
  const response = await reach(addressOf(name, ask), {
    method,
    headers: {
      accept: 'application/json',
      ...parts.body !== undefined && { 'content-type': 'application/json' },
      ...manner.csrf && { 'x-csrf-token': manner.csrf },
      ...manner.live === true && { 'x-live': '1' },
    },
    ...parts.body !== undefined && { body: JSON.stringify(parts.body) },
    ...manner.signal && { signal: manner.signal },
  })
  if (!response.ok) throw await problemOf(response)
  if (response.status === 204) return null as ResponseOf<N>
  try {
    return await response.json() as ResponseOf<N>
  } catch {
    throw new ApiError('unreachable', 'The answer was not whole. Try again.', response.status)
  }
}

/**
 * Where an operation is asked, with its parameters filled in: for links to CSV too.
 * Members of the query that are undefined are left out.
 */
export function addressOf<N extends OperationName>(name: N, ask: OperationInput<N>): string {
  const parts = ask as Parts
  const [, template] = splitName(name)
  const path = template.replaceAll(
    /:(\w+)/g, (_, param: string) => encodeURIComponent(parts.params?.[param] ?? ''),
  )
  const query = new URLSearchParams()
  for (const [member, value] of Object.entries(parts.query ?? {})) {
    if (value !== undefined && value !== null) query.set(member, String(value))
  }
  return `${BASE}${path}${query.size > 0 ? `?${query}` : ''}`
}

function splitName(name: OperationName): [method: string, path: string] {
  const at = name.indexOf(' ')
  return [name.slice(0, at), name.slice(at + 1)]
}

async function reach(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, { ...init, credentials: 'same-origin', cache: 'no-store' })
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new ApiError('unreachable', 'The gateway does not answer. It may be restarting.', 0)
  }
}

async function problemOf(response: Response): Promise<ApiError> {
  const fallback = `The gateway answered ${response.status} ${response.statusText}`.trim()
  let body: unknown
  try {
    body = await response.json()
  } catch {
    return new ApiError('unreachable', fallback, response.status) // a proxy's page, not the console's answer
  }
  const { code, message, field } = typeof body === 'object' && body !== null
    ? body as Record<string, unknown>
    : {}
  return new ApiError(
    typeof code === 'string' ? code as ProblemCode : 'internal',
    typeof message === 'string' ? message : fallback,
    response.status,
    typeof field === 'string' ? field : null,
  )
}

export type { Api, BodyOf, OperationName, ParamsOf, QueryOf, ResponseOf }
