import type { Authorization, Refusal } from '../credentials/credential.ts'
import type { RawHeaders } from '../proxy/headers.ts'
import type { OutgoingRequest } from '../proxy/transport.ts'
import type { LiveUpstream } from './upstreams.ts'

/** What one attempt sends to its upstream as the operator's credential. */
export class AttemptAuthorization {
  readonly #upstream: LiveUpstream
  readonly #refused: readonly Authorization[]
  #authorization: Authorization | null = null

  /** @param refused those of earlier attempts of the request at this upstream, which it refused */
  constructor(upstream: LiveUpstream, refused: readonly Authorization[] = []) {
    this.#upstream = upstream
    this.#refused = refused
  }

  /**
   * Adds the credential to a request.
   *
   * @returns null = done: only a credential that has to be fetched is awaited
   * @throws GatewayError credential_unavailable
   */
  readonly authorize = (request: OutgoingRequest): Promise<void> | null => {
    const shared = this.#upstream.credential
    if (shared === null) return null
    const authorization = shared.credential.authorize(this.#refused)
    if (authorization instanceof Promise) return authorization.then(fetched => this.#add(request, fetched))
    this.#add(request, authorization)
    return null
  }

  /** With that status the upstream may have refused the credential, and another one may succeed. */
  isRefusal(status: number): boolean {
    return this.#authorization !== null && (this.#upstream.credential?.credential.refusalStatuses.has(status) ?? false)
  }

  /**
   * The upstream refused the credential.
   *
   * @returns what was refused so far, for an attempt with another credential; null = there is no other
   */
  alternatives(refusal: Refusal): readonly Authorization[] | null {
    const credential = this.#upstream.credential?.credential
    if (credential === undefined || this.#authorization === null || !this.isRefusal(refusal.status)) return null
    const refused = [...this.#refused, this.#authorization]
    return credential.recordRefusal(refused, refusal) ? refused : null
  }

  /** The upstream responded. */
  responded(status: number, headers: RawHeaders): void {
    if (this.#authorization !== null) this.#upstream.credential?.credential.responded?.(this.#authorization, status, headers)
  }

  #add(request: OutgoingRequest, authorization: Authorization): void {
    this.#authorization = authorization
    request.headers.push(...authorization.headersFor(request, this.#upstream.url))
  }
}
