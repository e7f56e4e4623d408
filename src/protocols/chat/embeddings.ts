import { BodyObject } from '../neutral/dialects/body-object.ts'
import type { EmbeddingsFormat, EmbeddingsRequest, EmbeddingsResponse, EmbeddingsTranslation } from '../neutral/embeddings.ts'
import { asList, asNumber, asObject, asText, type JsonObject } from '../neutral/json.ts'
import type { TranslationReport } from '../neutral/report.ts'

export const CHAT_EMBEDDING_FIELDS = {
  model: 'mapped', input: 'mapped', dimensions: 'mapped', encoding_format: 'mapped', user: 'dropped',
} as const

export const CHAT_EMBEDDINGS: EmbeddingsTranslation = {
  endpoints: ['embeddings'], fields: CHAT_EMBEDDING_FIELDS, readRequest, writeRequest, readResponse, writeResponse,
}

function readRequest(given: JsonObject, report: TranslationReport): EmbeddingsRequest {
  const body = new BodyObject(given, '', report)
  const input = body.value('input')
  const inputs = (Array.isArray(input) ? input : [input]).map(item => (
    asText(item) ?? report.refuse('input', 'token ids are valid at one provider only; send text')
  ))
  body.ignore('model')
  return { inputs, dimensions: body.number('dimensions'), format: { isBase64: body.text('encoding_format') === 'base64', isSingle: false } }
}

function writeRequest({ inputs, dimensions }: EmbeddingsRequest, model: string): { path: string, body: JsonObject } {
  return { path: '/v1/embeddings', body: { model, input: inputs, encoding_format: 'float', ...dimensions !== null && { dimensions } } }
}

function readResponse(body: JsonObject): EmbeddingsResponse {
  const items = asList(body['data']).map(item => asObject(item) ?? {})
    .toSorted((a, b) => (asNumber(a['index']) ?? 0) - (asNumber(b['index']) ?? 0))
  const usage = asObject(body['usage'])
  return {
    vectors: items.map(({ embedding }) => typeof embedding === 'string' ? decodeVector(embedding) : asList(embedding).map(Number)),
    inputTokens: asNumber(usage?.['prompt_tokens']) ?? asNumber(usage?.['total_tokens']),
  }
}

function writeResponse({ vectors, inputTokens }: EmbeddingsResponse, { isBase64 }: EmbeddingsFormat, model: string): JsonObject {
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: isBase64 ? encodeVector(vector) : vector })),
    model,
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  }
}

/** Some servers send base64 even if the request asks for numbers. */
function decodeVector(text: string): number[] {
  const bytes = Buffer.from(text, 'base64')
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, at) => bytes.readFloatLE(at * 4))
}

function encodeVector(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [at, value] of vector.entries()) bytes.writeFloatLE(value, at * 4)
  return bytes.toString('base64')
}
