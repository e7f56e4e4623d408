import type { Identity } from '../../auth/keyring.ts'
import type { ClientRequest, ClientResponse } from '../../proxy/client/client.ts'
import type { Gateway } from './gateway.ts'

/** A part that the management listener serves in addition to the pipeline: the console. */
export interface Mount {
  /** The pipeline handles all other requests. */
  accepts(req: ClientRequest): boolean
  handle(req: ClientRequest, res: ClientResponse): void
  /** The gateway is about to end: unread responses must not delay it. */
  drain(): void
  close(): Promise<void>
}

/** What a mounted part can use of the gateway. */
export interface MountHost {
  /** The gateway of the current configuration. */
  current(): Gateway
  clientOf(req: ClientRequest): Client
  /** Sends a request through the pipeline as if it had a credential of that identity. */
  run(req: ClientRequest, res: ClientResponse, request: PreAuthenticatedRequest): void
}

export type OpenMount = (host: MountHost) => Mount

export interface Client {
  /** The peer, or the address reported by a trusted proxy. */
  readonly address: string
  /** The peer's address if it is a trusted proxy. */
  readonly trustedPeer: string | null
}

export interface PreAuthenticatedRequest {
  /** Replaces the URL of the request. */
  readonly url: string
  /** null = read the credential of the request. */
  readonly identity: Identity | null
  /** Lower-case names. */
  readonly strippedHeaders: ReadonlySet<string>
}
