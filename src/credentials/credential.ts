import { credentialUnavailable } from '../base/errors.ts'
import { CONSTANT } from './credential-state.ts'
import type { CredentialState } from './credential-state.ts'

/** Flat names and values. */
export type HeaderList = readonly string[]

/** The request that an attempt is about to send, without its credential. */
export interface UnauthorizedRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: HeaderList
  readonly body: Buffer | null
}

/** What one attempt proves to the upstream who the operator is with. */
export interface Authorization {
  /**
   * @param upstream its url
   * @returns a promise only where the request is signed
   */
  headersFor(request: UnauthorizedRequest, upstream: URL): HeaderList | Promise<HeaderList>
  /** The path with what only the source of the credential knows; absent = as it is. */
  pathFor?(path: string): string
}

/** The operator's credential for an upstream. */
export interface Credential {
  /**
   * What the next attempt of a request sends.
   *
   * @param refused those of earlier attempts of the request, which the upstream refused
   * @returns at once while the credential holds; a promise only where it has to be fetched
   * @throws GatewayError credential_unavailable
   */
  authorize(refused: readonly Authorization[]): Authorization | Promise<Authorization>
  /** HTTP statuses with which an upstream refuses this credential, where another one may succeed. */
  readonly refusalStatuses: ReadonlySet<number>
  /**
   * The upstream refused the last of these.
   *
   * @returns whether another authorization may succeed
   */
  recordRefusal(refused: readonly Authorization[], refusal: Refusal): boolean
  /** The upstream responded to a request with that authorization; absent = that is of no interest. */
  responded?(authorization: Authorization, status: number, headers: HeaderList): void
  /** Of each credential of a pool, or of the one. */
  states(): readonly CredentialState[]
  close(): void
}

/** How an upstream refused a request for its credential. */
export interface Refusal {
  readonly status: number
  /** How long the upstream asks to wait, ms; null = it does not say. */
  readonly retryAfterMs: number | null
}

/** The upstream does not accept the credential. */
export const UNAUTHORIZED: ReadonlySet<number> = new Set([401, 403])
const NONE: ReadonlySet<number> = new Set()

/** RFC 9110 section 5.5, without white space. */
const HEADER_VALUE = /^[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/

/**
 * A secret in a header.
 *
 * @param prefix what comes before the secret
 * @throws GatewayError credential_unavailable where no header can carry it
 */
export function headerAuthorization(header: string, prefix: string, secret: string): Authorization {
  checkHeaderSecret(secret)
  const headers = [header, prefix + secret]
  return { headersFor: () => headers }
}

/** @throws GatewayError credential_unavailable where no header can carry it */
export function checkHeaderSecret(secret: string): void {
  if (secret === '') throw credentialUnavailable('the secret is empty')
  if (!HEADER_VALUE.test(secret)) throw credentialUnavailable('the secret has a character that is not allowed in a header')
}

/** A credential that does not change. */
export function staticCredential(header: string, value: string): Credential {
  const headers = [header, value]
  const authorization: Authorization = { headersFor: () => headers }
  return { authorize: () => authorization, refusalStatuses: NONE, recordRefusal: () => false, states: () => [CONSTANT], close: () => {} }
}
