import type { Api, BodyOf, OperationName, ParamsOf, QueryOf, ResponseOf } from '../../api/api.ts'

const BASE = '/console/api'

/** Query, path parameters and body of an operation; only the ones that it declares. */
export type OperationInput<N extends OperationName> =
  (QueryOf<N> extends undefined ? unknown : { readonly query?: QueryOf<N> }) &
  (ParamsOf<N> extends undefined ? unknown : { readonly params: ParamsOf<N> }) &
  (BodyOf<N> extends undefined ? unknown : { readonly body: BodyOf<N> })

/** The same without the operation's types, for building the request. */
interface UntypedInput {
  readonly query?: Readonly<Record<string, unknown>>
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface SendOptions {
  /** CSRF token of the session; required for requests that change something. */
  readonly csrf?: string | null
  /** An automatic refresh: it does not extend the session. */
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
  /** No response from the gateway, or a proxy responded instead. */
  | 'unreachable'

/** An error of the console's API, or a failure to reach it. The message is shown to the user. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ProblemCode
  /** HTTP status; 0 without a response. */
  readonly status: number
  /** The request field that is invalid; null if none is named. */
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
 * @param input - its path parameters, query and body
 * @returns the response, in the shape that the API table declares
 * @throws {ApiError} on an error response or without a response
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
 * Address of an operation with its parameters filled in; also used for CSV links.
 * Undefined and null query parameters are left out.
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
    return new ApiError('unreachable', fallback, response.status) // not JSON: the error page of a proxy
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
