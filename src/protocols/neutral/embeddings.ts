import type { JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'

export interface EmbeddingsRequest {
  readonly inputs: readonly string[]
  /** Length of each vector; null = the model's default. */
  readonly dimensions: number | null
  readonly format: EmbeddingsFormat
}

/** The format of the response that the client asks for. */
export interface EmbeddingsFormat {
  /** true = a vector is base64 of little-endian float32 numbers; false = a list of numbers. */
  readonly isBase64: boolean
  /** true = the response is a single vector; false = a list of vectors. */
  readonly isSingle: boolean
}

export interface EmbeddingsResponse {
  /** The vectors, in the order of the inputs. */
  readonly vectors: readonly (readonly number[])[]
  /** Tokens of all inputs; null = not reported. */
  readonly inputTokens: number | null
}

/** How a protocol reads and writes requests and responses for embeddings. */
export interface EmbeddingsTranslation {
  /** Names of the endpoints whose requests are translated. */
  readonly endpoints: readonly string[]
  /** All fields of a request, by path. `dropped`: no other protocol has the field. */
  readonly fields: Readonly<Record<string, 'mapped' | 'dropped'>>
  /** @throws GatewayError not_translatable */
  readRequest(body: JsonObject, report: TranslationReport): EmbeddingsRequest
  /** @param model the upstream's name of the model */
  writeRequest(request: EmbeddingsRequest, model: string): { readonly path: string, readonly body: JsonObject }
  readResponse(body: JsonObject): EmbeddingsResponse
  /** @param model the client's name of the model */
  writeResponse(response: EmbeddingsResponse, format: EmbeddingsFormat, model: string): JsonObject
}
