import { credentialRejected } from '../base/errors.ts'
import type { Upstream } from '../config/types.ts'
import type { Authorization, HeaderList, CredentialRefusal } from './credentials/credential.ts'
import type { RefusedFor } from './credentials/refusals.ts'
import type { OutgoingRequest } from '../proxy/upstream/transport.ts'
import type { CallCredential } from '../proxy/upstream/upstream-call.ts'
import { isOperatorError } from '../routing/failure.ts'
import type { LiveUpstream, SharedCredential } from './live-upstreams.ts'

/** Only refusals with 401 are remembered, because 402 and 403 may be about the requested model or account. */
export const REMEMBERED_STATUS = 401
const TOO_MANY_REQUESTS = 429

const NONE: HeaderList = []
const NONE_REFUSED: readonly Authorization[] = []

/** Is the provider paid by the client, whose own credential is sent? */
export function isPaidByClient({ auth }: Pick<Upstream, 'auth'>): boolean {
  return auth?.kind === 'client'
}

/** The use of a credential by one request. */
export interface CredentialUse {
  /** The endpoint and model, because an upstream may refuse the credential only for them. */
  readonly purpose: RefusedFor
  /** The client's key; null = none. Refusals are remembered by key too, so that one client's refusals do not affect other clients. */
  readonly key: string | null
  /** true = the client has chosen an account, so that a refusal may be about that account and not about the credential. */
  readonly choosesAccount: boolean
  /** The client's own credential, which is sent in place of the operator's; flat. null = the operator's is sent. */
  readonly own: HeaderList | null
}

/**
 * One request to one upstream with the operator's credential, or the client's own: the attempt of a client's request
 * (`UpstreamAttempt`), a health check, or a check of credentials.
 */
export class Attempt implements CallCredential {
  readonly upstream: LiveUpstream
  readonly #use: CredentialUse
  readonly #refused: readonly Authorization[]
  #authorization: Authorization | null = null
  #headers: HeaderList = NONE

  /**
   * @param use the credential is not sent if a refusal for this use is remembered
   * @param refused credentials that this upstream refused in earlier attempts of the request
   */
  constructor(upstream: LiveUpstream, use: CredentialUse, refused: readonly Authorization[] = NONE_REFUSED) {
    this.upstream = upstream
    this.#use = use
    this.#refused = refused
  }

  /**
   * Adds the credential. @returns null = done; a promise if the credential must be fetched or the request must be signed
   * @throws GatewayError credential_unavailable; upstream_rejected_key
   */
  authorize(request: OutgoingRequest): Promise<void> | null {
    const { own } = this.#use
    if (own !== null) this.#attach(request, own)
    const shared = this.upstream.credential
    if (shared === null) return null
    const authorization = shared.credential.authorize(this.#refused)
    if (authorization instanceof Promise) return authorization.then(async fetched => {
      await this.#add(request, shared, fetched)
    })
    return this.#add(request, shared, authorization)
  }

  /** The secrets in the request, which must not reach the client. */
  get secrets(): readonly string[] {
    return this.upstream.secrets.of(this.#headers)
  }

  responded(status: number, headers: HeaderList): void {
    if (this.#authorization !== null) this.upstream.credential?.responded(this.#authorization, status, headers)
  }

  /** @returns true = with this status the upstream refuses the credential, and another credential may succeed */
  isRefusal(status: number): boolean {
    return this.#authorization !== null && (this.upstream.credential?.credential.refusalStatuses.has(status) ?? false)
  }

  /** The status is about the client's own credential or account: no fault of the operator or the upstream. */
  concernsClient(status: number): boolean {
    return this.#use.own !== null && (isOperatorError(status) || status === TOO_MANY_REQUESTS)
  }

  /** The upstream refused the client's own credential: the client gets the response, and no other target is tried. */
  refusesClient(status: number): boolean {
    return this.#use.own !== null && isOperatorError(status)
  }

  /** A refusal may concern the client's choice, not the credential. */
  get isClientsChoice(): boolean {
    return this.#use.choosesAccount
  }

  /** Remembers a 401, so that the credential is not sent again for some time. @returns false = the refusal was remembered already */
  rememberRefusal(status: number): boolean {
    const { credential } = this.upstream
    if (status !== REMEMBERED_STATUS || credential === null || this.#authorization === null || this.isClientsChoice) return true
    credential.refusals.add(this.#authorization, this.#subject)
    return credential.refusals.add(this.#authorization, this.#use.purpose)
  }

  /** @returns the credentials that were refused so far, to try another credential; null = there is no other credential */
  alternatives(refusal: CredentialRefusal): readonly Authorization[] | null {
    const credential = this.upstream.credential?.credential
    if (credential === undefined || this.#authorization === null || !this.isRefusal(refusal.status)) return null
    if (this.isClientsChoice && refusal.status !== 429) return null
    const refused = [...this.#refused, this.#authorization]
    return credential.recordRefusal(refused, refusal) ? refused : null
  }

  get #subject(): RefusedFor {
    return [...this.#use.purpose, this.#use.key]
  }

  #add(request: OutgoingRequest, { refusals }: SharedCredential, authorization: Authorization): Promise<void> | null {
    this.#authorization = authorization
    if (!this.isClientsChoice && refusals.has(authorization, this.#subject)) throw credentialRejected(REMEMBERED_STATUS)
    request.path = authorization.pathFor?.(request.path) ?? request.path
    const headers = authorization.headersFor(request, this.upstream.url)
    if (headers instanceof Promise) return headers.then(signed => this.#attach(request, signed))
    this.#attach(request, headers)
    return null
  }

  #attach(request: OutgoingRequest, headers: HeaderList): void {
    this.#headers = headers
    request.headers.push(...headers)
  }
}
