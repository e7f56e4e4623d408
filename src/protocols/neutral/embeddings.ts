import type { JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'

export interface EmbeddingsRequest {
  readonly inputs: readonly string[]
  /** null = the model's default. */
  readonly dimensions: number | null
  readonly format: EmbeddingsFormat
}

/** The form of the response that the client asks for. */
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
  /** Names of the translated endpoints. */
  readonly endpoints: readonly string[]
  /** All fields of a request by path; `dropped` = no other protocol has the field. */
  readonly fields: Readonly<Record<string, 'mapped' | 'dropped'>>
  /** @throws GatewayError not_translatable */
  readRequest(body: JsonObject, report: TranslationReport): EmbeddingsRequest
  /** @param model the upstream's name of the model */
  writeRequest(request: EmbeddingsRequest, model: string): { readonly path: string, readonly body: JsonObject }
  readResponse(body: JsonObject): EmbeddingsResponse
  /** @param model the client's name of the model */
  writeResponse(response: EmbeddingsResponse, format: EmbeddingsFormat, model: string): JsonObject
}
