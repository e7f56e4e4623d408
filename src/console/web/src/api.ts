import type { Api, BodyOf, OperationName, ParamsOf, QueryOf, ResponseOf } from '../../api/api.ts'

const BASE = '/console/api'

/** The query, path parameters and body of an operation. The type has only those that the operation declares. */
export type OperationInput<N extends OperationName> =
  (QueryOf<N> extends undefined ? unknown : { readonly query?: QueryOf<N> }) &
  (ParamsOf<N> extends undefined ? unknown : { readonly params: ParamsOf<N> }) &
  (BodyOf<N> extends undefined ? unknown : { readonly body: BodyOf<N> })

/** The input of any operation, for the code that builds the request. */
interface UntypedInput {
  readonly query?: Readonly<Record<string, unknown>>
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface SendOptions {
  /** CSRF token of the session; required if the request changes something. */
  readonly csrf?: string | null
  /** true if the request is an automatic refresh, which does not extend the session. */
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
  /** The gateway did not respond, or a proxy responded instead of the gateway. */
  | 'unreachable'

/** An error response of the console's API, or a failure to reach the API. The user sees the message. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ProblemCode
  /** HTTP status; 0 = no response. */
  readonly status: number
  /** The field of the request that is invalid; null = the response names no field. */
  readonly field: string | null

  constructor(code: ProblemCode, message: string, status: number, field: string | null = null) {
    super(message)
    this.code = code
    this.status = status
    this.field = field
  }
}

/**
 * Calls an operation of the console's API.
 * @param name - the operation, as in the API table: `GET /panel`
 * @param input - path parameters, query and body of the operation
 * @returns the response, in the shape that the API table declares
 * @throws {ApiError} if the response is an error, or if there is no response
 */
export async function send<N extends OperationName>(
  name: N, input: OperationInput<N>, options: SendOptions = {},
): Promise<ResponseOf<N>> {
  const { body } = input as UntypedInput
  const [method] = splitName(name)
  const response = await fetchApi(addressOf(name, input), {
    method,
    headers: {
      accept: 'application/json',
      ...body !== undefined && { 'content-type': 'application/json' },
      ...options.csrf && { 'x-csrf-token': options.csrf },
      ...options.live === true && { 'x-live': '1' },
    },
    ...body !== undefined && { body: JSON.stringify(body) },
    ...options.signal && { signal: options.signal },
  })
  if (!response.ok) throw await errorOf(response)
  if (response.status === 204) return null as ResponseOf<N>
  try {
    return await response.json() as ResponseOf<N>
  } catch {
    throw new ApiError('unreachable', 'The response is incomplete. Try again.', response.status)
  }
}

/**
 * The URL of an operation with its parameters; also used for links to CSV files. Query parameters that are undefined or null are left out.
 */
export function addressOf<N extends OperationName>(name: N, input: OperationInput<N>): string {
  const { params, query: parameters } = input as UntypedInput
  const [, template] = splitName(name)
  const path = template.replaceAll(
    /:(\w+)/g, (_, param: string) => encodeURIComponent(params?.[param] ?? ''),
  )
  const query = new URLSearchParams()
  for (const [parameter, value] of Object.entries(parameters ?? {})) {
    if (value !== undefined && value !== null) query.set(parameter, String(value))
  }
  return `${BASE}${path}${query.size > 0 ? `?${query}` : ''}`
}

function splitName(name: OperationName): [method: string, path: string] {
  const at = name.indexOf(' ')
  return [name.slice(0, at), name.slice(at + 1)]
}

async function fetchApi(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, { ...init, credentials: 'same-origin', cache: 'no-store' })
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new ApiError('unreachable', 'The gateway does not respond. It may be restarting.', 0)
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const fallback = `The gateway responded with ${response.status} ${response.statusText}`.trim()
  let body: unknown
  try {
    body = await response.json()
  } catch {
    return new ApiError('unreachable', fallback, response.status) // not JSON: an error page of a proxy
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
