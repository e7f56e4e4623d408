import type { Identity } from '../auth/keyring.ts'
import type { ClientRequest, ClientResponse } from '../proxy/client.ts'
import type { Gateway } from './gateway.ts'

/** Something that is served on the console's listener beside the pipeline: there the console is mounted. */
export interface Mount {
  /** Is the request this part's to answer? All others are the pipeline's. */
  accepts(req: ClientRequest): boolean
  handle(req: ClientRequest, res: ClientResponse): void
  /** The gateway is about to end: answers that nobody reads must not keep it waiting. */
  drain(): void
  /** Ends what it has open. */
  close(): Promise<void>
}

/** What a mounted part is given to work with. */
export interface MountHost {
  /** The gateway that is in force at this moment. */
  current(): Gateway
  clientOf(req: ClientRequest): Client
  /** Sends a request through the pipeline, as if it had come with a credential of that identity. */
  run(req: ClientRequest, res: ClientResponse, vouched: PreAuthenticatedRequest): void
}

export type OpenMount = (host: MountHost) => Mount

/** Who is at the other end of a connection. */
export interface Client {
  /** The peer's address, or what a trusted proxy says. */
  readonly address: string
  /** The peer's address if it is a trusted proxy. */
  readonly trustedPeer: string | null
}

export interface PreAuthenticatedRequest {
  /** Request target that takes the place of the request's own. */
  readonly url: string
  readonly identity: Identity
  /** Lower-case names of headers that are for the mounted part alone. */
  readonly strippedHeaders: ReadonlySet<string>
}
