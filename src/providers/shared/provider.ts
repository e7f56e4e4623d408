import type { GatewayError } from '../../base/errors.ts'
import type { Endpoint } from '../../protocols/endpoint/protocol.ts'

/** A request of a vendor's own API. */
export interface NativeRequest {
  readonly endpoint: Endpoint
  /** Without the query. */
  readonly path: string
  /** Including the `?`; empty = none. */
  readonly query: string
  /** The model's name at the provider; null = the request names none. */
  readonly model: string | null
  readonly stream: boolean
}

export type ProviderAddress = Pick<NativeRequest, 'path' | 'query'>

/** Converts the provider's bytes to the vendor's as they arrive. */
export interface BodyDecoder {
  /** @returns the bytes that can be passed on now */
  push(chunk: Buffer): Buffer
  /** @returns the rest */
  end(): Buffer
  /** null = the bytes are readable so far. Nothing is decoded after a fault. */
  readonly fault: GatewayError | null
}

export interface ResponseReading {
  /** The headers for the client, flat. */
  readonly headers: readonly string[]
  /** null = the body already has the vendor's format. */
  readonly decoder: BodyDecoder | null
}

/** How a cloud serves the APIs of vendors: paths, bodies, framing. */
export interface Provider {
  /** @throws GatewayError not_translatable if the provider does not serve the endpoint */
  addressOf(request: NativeRequest): ProviderAddress
  /** Converts the body for the provider; absent = unchanged. @param body not compressed @param headers of the request, flat */
  bodyOf?(request: NativeRequest, body: Buffer, headers: readonly string[]): Buffer
  /** Headers that the provider does not read, lower-case. */
  readonly droppedHeaders?: ReadonlySet<string>
  /** Reads the head; absent = responses already have the vendor's format. @param headers flat */
  readResponse?(request: NativeRequest, status: number, headers: readonly string[]): ResponseReading
  /** The protocols for a model; absent = the configuration decides. @param model null = none is named */
  speaks?(model: string | null): readonly string[] | null
}

/** Placeholder in a path, for a Google Cloud project that only the credential knows. */
export const CREDENTIAL_PROJECT = '{project}'
