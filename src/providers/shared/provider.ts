import type { GatewayError } from '../../base/errors.ts'
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

/** Makes the vendor's bytes of the provider's, while they come. */
export interface BodyDecoder {
  /** @returns what can be passed on now */
  push(chunk: Buffer): Buffer
  /** No more will come. @returns the rest */
  end(): Buffer
  /** Why what came last cannot be read; null = it can. Nothing is decoded after it. */
  readonly fault: GatewayError | null
}

/** How a response is read. */
export interface ResponseReading {
  /** The headers for the client, flat. */
  readonly headers: readonly string[]
  /** null = the body is the vendor's own. */
  readonly decoder: BodyDecoder | null
}

/** How a cloud provider serves the APIs of model vendors: its paths, its bodies, its framing. */
export interface Provider {
  /** @throws GatewayError not_translatable where the provider does not serve the endpoint */
  addressOf(request: NativeRequest): ProviderAddress
  /**
   * The body as the provider reads it; absent = as it is.
   *
   * @param body not compressed
   * @param headers of the request, flat
   */
  bodyOf?(request: NativeRequest, body: Buffer, headers: readonly string[]): Buffer
  /** Lower-case names of headers that the provider does not read. */
  readonly droppedHeaders?: ReadonlySet<string>
  /**
   * Reads the head of a response; absent = responses are the vendor's own.
   *
   * @param status HTTP status
   * @param headers flat
   */
  readResponse?(request: NativeRequest, status: number, headers: readonly string[]): ResponseReading
  /** The protocols in which it serves a model; absent = the configuration says it. @param model null = none is named */
  speaks?(model: string | null): readonly string[] | null
}

/** Stands in a path for the project of Google Cloud that the credential alone knows. */
export const CREDENTIAL_PROJECT = '{project}'
