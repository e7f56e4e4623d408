import type { JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'

/** A request for embeddings, without a wire protocol. */
export interface EmbeddingsRequest {
  readonly inputs: readonly string[]
  /** Of each vector; null = the model's own number. */
  readonly dimensions: number | null
  /** How the client wants the response, for its own protocol to read. */
  readonly format: EmbeddingsFormat
}

export interface EmbeddingsFormat {
  /** Vectors come as base64 of float32, little-endian. */
  readonly isBase64: boolean
  /** The response is one vector, rather than a list. */
  readonly isSingle: boolean
}

export interface EmbeddingsResponse {
  /** In the order of the inputs. */
  readonly vectors: readonly (readonly number[])[]
  /** Tokens of all inputs; null = the upstream does not say. */
  readonly inputTokens: number | null
}

/** A protocol's part in the translation of embeddings. */
export interface EmbeddingsTranslation {
  /** The names of the endpoints whose requests are translated. */
  readonly endpoints: readonly string[]
  /** Every field of a request, as a path of the client's body: `mapped`, or what no other protocol has. */
  readonly fields: Readonly<Record<string, 'mapped' | 'dropped'>>
  /** @throws GatewayError not_translatable */
  readRequest(body: JsonObject, report: TranslationReport): EmbeddingsRequest
  /** @param model the model's name at the upstream */
  writeRequest(request: EmbeddingsRequest, model: string): { readonly path: string, readonly body: JsonObject }
  readResponse(body: JsonObject): EmbeddingsResponse
  /** @param model as the client named it */
  writeResponse(response: EmbeddingsResponse, format: EmbeddingsFormat, model: string): JsonObject
}
