import type { Identity } from '../../auth/keyring.ts'
import type { ClientRequest, ClientResponse } from '../../proxy/client/client.ts'
import type { Gateway } from './gateway.ts'

/** A part that the management listener serves in addition to the pipeline: the console. */
export interface Mount {
  /** @returns false = the pipeline handles the request */
  accepts(req: ClientRequest): boolean
  handle(req: ClientRequest, res: ClientResponse): void
  /** Called when the gateway begins to drain: the mounted part limits the time of open responses, so that the gateway can end. */
  drain(): void
  close(): Promise<void>
}

/** What a mounted part can use of the gateway. */
export interface MountHost {
  /** The gateway of the current configuration. */
  current(): Gateway
  clientOf(req: ClientRequest): Client
  /** Runs a request through the pipeline with the identity of `request`. */
  run(req: ClientRequest, res: ClientResponse, request: PreAuthenticatedRequest): void
}

export type OpenMount = (host: MountHost) => Mount

export interface Client {
  /** The peer's address, or the address that a trusted proxy reports. */
  readonly address: string
  /** The peer's address if it is a trusted proxy. */
  readonly trustedPeer: string | null
}

export interface PreAuthenticatedRequest {
  /** Replaces the URL of the request. */
  readonly url: string
  /** null = the pipeline reads the key in the request. */
  readonly identity: Identity | null
  /** Headers that the pipeline must not see; lower-case names. */
  readonly strippedHeaders: ReadonlySet<string>
}
