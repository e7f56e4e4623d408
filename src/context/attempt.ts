import { credentialRejected } from '../base/errors.ts'
import type { Authorization, HeaderList, Refusal } from '../credentials/credential.ts'
import type { RefusedFor } from '../credentials/refusals.ts'
import type { OutgoingRequest } from '../proxy/transport.ts'
import type { CallCredential } from '../proxy/upstream-call.ts'
import type { LiveUpstream, SharedCredential } from './live-upstreams.ts'

/** The status that is about the credential alone; 402 and 403 may be about what was asked for. */
export const REMEMBERED_STATUS = 401

const NONE: HeaderList = []
const NONE_REFUSED: readonly Authorization[] = []

/** What a credential is sent for. */
export interface CredentialUse {
  /** An upstream may refuse it for one endpoint or one model. */
  readonly purpose: RefusedFor
  /** The client's key; null = it has none. A client may cause a refusal: the requests of others are sent. */
  readonly key: string | null
  /** The client has chosen an account, which may be what the upstream refuses. */
  readonly choosesAccount: boolean
}

/**
 * One try at one upstream, with the operator's credential: a request of a client, over HTTP or a WebSocket
 * (`UpstreamAttempt`), a health check, or a check of credentials.
 */
export class Attempt implements CallCredential {
  readonly upstream: LiveUpstream
  readonly #use: CredentialUse
  readonly #refused: readonly Authorization[]
  #authorization: Authorization | null = null
  #headers: HeaderList = NONE

  /**
   * @param use the credential is not sent while the upstream's refusal for that is remembered
   * @param refused those of earlier attempts of the request at this upstream, which it refused
   */
  constructor(upstream: LiveUpstream, use: CredentialUse, refused: readonly Authorization[] = NONE_REFUSED) {
    this.upstream = upstream
    this.#use = use
    this.#refused = refused
  }

  /**
   * Adds the credential to a request.
   *
   * @returns null = done: a credential that has to be fetched is awaited, and the signature of the request
   * @throws GatewayError credential_unavailable; upstream_rejected_key
   */
  authorize(request: OutgoingRequest): Promise<void> | null {
    const shared = this.upstream.credential
    if (shared === null) return null
    const authorization = shared.credential.authorize(this.#refused)
    if (authorization instanceof Promise) return authorization.then(async fetched => {
      await this.#add(request, shared, fetched)
    })
    return this.#add(request, shared, authorization)
  }

  /** What was sent, and must not come back to the client. */
  get secrets(): readonly string[] {
    return this.upstream.secrets.of(this.#headers)
  }

  /** The upstream responded. */
  responded(status: number, headers: HeaderList): void {
    if (this.#authorization !== null) this.upstream.credential?.responded(this.#authorization, status, headers)
  }

  /** With that status the upstream may have refused the credential, and another one may succeed. */
  isRefusal(status: number): boolean {
    return this.#authorization !== null && (this.upstream.credential?.credential.refusalStatuses.has(status) ?? false)
  }

  /** A refusal may be of what the client has chosen, and not of the credential. */
  get isClientsChoice(): boolean {
    return this.#use.choosesAccount
  }

  /** The upstream refused the credential: after a 401 it is not sent again for a while. @returns false = it was logged before */
  rememberRefusal(status: number): boolean {
    const { credential } = this.upstream
    if (status !== REMEMBERED_STATUS || credential === null || this.#authorization === null || this.isClientsChoice) return true
    credential.refusals.add(this.#authorization, this.#subject)
    return credential.refusals.add(this.#authorization, this.#use.purpose)
  }

  /**
   * The upstream refused the credential.
   *
   * @returns what was refused so far, for an attempt with another credential; null = there is no other
   */
  alternatives(refusal: Refusal): readonly Authorization[] | null {
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
