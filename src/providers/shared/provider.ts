import type { Endpoint } from '../../protocols/shared/protocol.ts'

/** A request of a vendor's own API. */
export interface NativeRequest {
  readonly endpoint: Endpoint
  /** Without the query. */
  readonly path: string
  /** With its `?`; empty = none. */
  readonly query: string
  /** The model's name at the provider; null = the request names none. */
  readonly model: string | null
  readonly stream: boolean
}

/** Where a request goes at the provider. */
export interface ProviderAddress {
  readonly path: string
  readonly query: string
}

/** How a cloud provider serves the APIs of model vendors: its paths, its bodies, its framing. */
export interface Provider {
  /** @throws GatewayError not_at_provider */
  addressOf(request: NativeRequest): ProviderAddress
  /**
   * The body as the provider reads it; absent = as it is.
   *
   * @param headers of the request, flat
   */
  bodyOf?(request: NativeRequest, body: Buffer, headers: readonly string[]): Buffer
  /** Lower-case names of headers that the provider does not read. */
  readonly droppedHeaders?: ReadonlySet<string>
}
