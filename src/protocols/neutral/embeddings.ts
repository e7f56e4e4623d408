import type { JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'

/** A request for embeddings, independent of the protocol. */
export interface EmbeddingsRequest {
  readonly inputs: readonly string[]
  /** Of each vector; null = the model's default. */
  readonly dimensions: number | null
  /** The form of the response that the client asks for, in terms of its own protocol. */
  readonly format: EmbeddingsFormat
}

export interface EmbeddingsFormat {
  /** Vectors are base64 of float32, little-endian. */
  readonly isBase64: boolean
  /** The response is a single vector, not a list. */
  readonly isSingle: boolean
}

export interface EmbeddingsResponse {
  /** In the order of the inputs. */
  readonly vectors: readonly (readonly number[])[]
  /** Tokens of all inputs; null = not reported. */
  readonly inputTokens: number | null
}

/** A protocol's part in the translation of embeddings. */
export interface EmbeddingsTranslation {
  /** The names of the endpoints whose requests are translated. */
  readonly endpoints: readonly string[]
  /** Every field of a request, as a path in the client's body: `mapped`, or `dropped` if no other protocol has it. */
  readonly fields: Readonly<Record<string, 'mapped' | 'dropped'>>
  /** @throws GatewayError not_translatable */
  readRequest(body: JsonObject, report: TranslationReport): EmbeddingsRequest
  /** @param model the upstream's name of the model */
  writeRequest(request: EmbeddingsRequest, model: string): { readonly path: string, readonly body: JsonObject }
  readResponse(body: JsonObject): EmbeddingsResponse
  /** @param model the client's name of the model */
  writeResponse(response: EmbeddingsResponse, format: EmbeddingsFormat, model: string): JsonObject
}
