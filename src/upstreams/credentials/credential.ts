import { credentialUnavailable } from '../../base/errors.ts'
import { CONSTANT, type CredentialState } from './credential-state.ts'

/** Header names and values, alternating. */
export type HeaderList = readonly string[]

/** A request before its credential is added. */
export interface UnauthorizedRequest {
  readonly method: string
  readonly path: string
  readonly headers: HeaderList
  readonly body: Buffer | null
}

/** The credential as one attempt sends it. */
export interface Authorization {
  /** Returns a promise only if the request is signed. */
  headersFor(request: UnauthorizedRequest, upstream: URL): HeaderList | Promise<HeaderList>
  /** Adds the part of the path that only the credential's source knows, such as a project; absent = the path does not change. */
  pathFor?(path: string): string
}

/** The operator's credential for an upstream. */
export interface Credential {
  /**
   * @returns the authorization for the next attempt of a request; a promise only if the credential must be fetched
   * @param refused authorizations of earlier attempts of the request, which the upstream refused
   * @throws GatewayError credential_unavailable
   */
  authorize(refused: readonly Authorization[]): Authorization | Promise<Authorization>
  /** Statuses by which an upstream refuses this credential, and after which another credential may succeed. */
  readonly refusalStatuses: ReadonlySet<number>
  /** Records that the upstream refused the last authorization in `refused`. @returns true = another authorization may succeed */
  recordRefusal(refused: readonly Authorization[], refusal: CredentialRefusal): boolean
  /** Called for each response to a request with this authorization; absent = not needed. */
  responded?(authorization: Authorization, status: number, headers: HeaderList): void
  /** One state for each credential of a pool, or for the only credential. */
  states(): readonly CredentialState[]
  close(): void
}

/** How an upstream refused a credential. */
export interface CredentialRefusal {
  readonly status: number
  /** Milliseconds that the upstream requests to wait; null = none. */
  readonly retryAfterMs: number | null
}

export const UNAUTHORIZED: ReadonlySet<number> = new Set([401, 403])
const NONE: ReadonlySet<number> = new Set()
/** A header value (RFC 9110 section 5.5) without white space at the ends. */
const HEADER_VALUE = /^[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/

/** Sends `prefix` and the secret in a header. @throws GatewayError credential_unavailable if a header cannot contain the secret */
export function headerAuthorization(header: string, prefix: string, secret: string): Authorization {
  checkHeaderSecret(secret)
  const headers = [header, prefix + secret]
  return { headersFor: () => headers }
}

/** @throws GatewayError credential_unavailable if a header cannot contain the secret */
export function checkHeaderSecret(secret: string): void {
  if (secret === '') throw credentialUnavailable('the secret is empty')
  if (!HEADER_VALUE.test(secret)) throw credentialUnavailable('the secret has a character that is not allowed in a header')
}

export function staticCredential(header: string, value: string): Credential {
  const headers = [header, value]
  const authorization: Authorization = { headersFor: () => headers }
  return { authorize: () => authorization, refusalStatuses: NONE, recordRefusal: () => false, states: () => [CONSTANT], close: () => {} }
}
