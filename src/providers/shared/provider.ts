import type { GatewayError } from '../../base/errors.ts'
import type { Endpoint } from '../../protocols/endpoint/protocol.ts'

/** A request of a vendor's own API. */
export interface NativeRequest {
  readonly endpoint: Endpoint
  /** The path without the query. */
  readonly path: string
  /** The query with the `?`; empty = none. */
  readonly query: string
  /** The model's name at the provider; null = the request names no model. */
  readonly model: string | null
  readonly stream: boolean
}

export type ProviderAddress = Pick<NativeRequest, 'path' | 'query'>

/** Converts a body from the provider's format to the vendor's format as it arrives. */
export interface BodyDecoder {
  /** @returns the bytes that can be passed on now */
  push(chunk: Buffer): Buffer
  /** Call this when the body has ended. @returns the rest of the bytes */
  end(): Buffer
  /** Why the bytes cannot be decoded; null = no fault so far. Nothing is decoded after a fault. */
  readonly fault: GatewayError | null
}

export interface ResponseReading {
  /** The headers for the client, flat. */
  readonly headers: readonly string[]
  /** null = the body already has the vendor's format. */
  readonly decoder: BodyDecoder | null
}

/** Converts between a vendor's API and the form in which a cloud serves that API: paths, bodies and framing. */
export interface Provider {
  /** @throws GatewayError not_translatable if the provider does not serve the endpoint */
  addressOf(request: NativeRequest): ProviderAddress
  /** Converts the body for the provider; absent = bodies are not changed. @param body not compressed @param headers of the request, flat */
  bodyOf?(request: NativeRequest, body: Buffer, headers: readonly string[]): Buffer
  /** Headers that the provider does not read, lower-case. */
  readonly droppedHeaders?: ReadonlySet<string>
  /** Called with the head of a response; absent = responses have the vendor's format already. @param headers flat */
  readResponse?(request: NativeRequest, status: number, headers: readonly string[]): ResponseReading
  /** The protocols that a model accepts; absent = the configuration decides. @param model null = the request names no model */
  speaks?(model: string | null): readonly string[] | null
}

/** Placeholder in a path for the Google Cloud project, if only the credential's source knows the project. */
export const CREDENTIAL_PROJECT = '{project}'
