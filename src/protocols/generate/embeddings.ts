import type { BodyObject } from '../neutral/dialects/body-object.ts'
import type { EmbeddingsFormat, EmbeddingsRequest, EmbeddingsResponse, EmbeddingsTranslation } from '../neutral/embeddings.ts'
import { asList, asNumber, asObject, type JsonObject } from '../neutral/json.ts'
import type { TranslationReport } from '../neutral/report.ts'
import { camelCase } from './camel-case.ts'
import { ProtobufObject } from './protobuf-object.ts'

const BATCH = 'requests'
const SINGLE_FIELDS = {
  model: 'mapped', content: 'mapped', outputDimensionality: 'mapped', taskType: 'dropped', title: 'dropped', autoTruncate: 'dropped',
} as const
/** Fields of one request, or of a list of requests. */
const GENERATE_EMBEDDING_FIELDS: EmbeddingsTranslation['fields'] = {
  ...SINGLE_FIELDS,
  ...Object.fromEntries(Object.entries(SINGLE_FIELDS).map(([name, rule]) => [`${BATCH}.${name}`, rule] as const)),
}

export const GENERATE_EMBEDDINGS: EmbeddingsTranslation = {
  endpoints: ['generate.embed', 'generate.batch_embed'], fields: GENERATE_EMBEDDING_FIELDS,
  readRequest, writeRequest, readResponse, writeResponse,
}

function readRequest(given: JsonObject, report: TranslationReport): EmbeddingsRequest {
  const body = new ProtobufObject(camelCase(given), '', report)
  const isSingle = body.value(BATCH) === null
  const requests = isSingle ? [body] : body.objects(BATCH)
  const dimensions = new Set(requests.map(request => request.number('outputDimensionality')))
  if (dimensions.size > 1) requests[0]?.refuse('outputDimensionality', 'the target has one number of dimensions for all inputs')
  return { inputs: requests.map(textOf), dimensions: [...dimensions][0] ?? null, format: { isBase64: false, isSingle } }
}

function textOf(request: BodyObject): string {
  // `model` repeats the model in the path, and the role of an input has no effect.
  request.ignore('model')
  const content = request.object('content') ?? request.refuse('content', 'it must be an object')
  content.ignore('role')
  return content.objects('parts').map(part => part.text('text') ?? content.refuse('parts', 'the target embeds only text')).join('\n')
}

function writeRequest({ inputs, dimensions }: EmbeddingsRequest, model: string): { path: string, body: JsonObject } {
  const options = { model: `models/${model}`, ...dimensions !== null && { outputDimensionality: dimensions } }
  return {
    path: `/v1beta/models/${encodeURIComponent(model)}:batchEmbedContents`,
    body: { [BATCH]: inputs.map(text => ({ ...options, content: { parts: [{ text }] } })) },
  }
}

function readResponse(body: JsonObject): EmbeddingsResponse {
  return {
    vectors: asList(body['embeddings']).map(item => asList(asObject(item)?.['values']).map(Number)),
    inputTokens: asNumber(asObject(body['usageMetadata'])?.['promptTokenCount']),
  }
}

function writeResponse({ vectors, inputTokens }: EmbeddingsResponse, { isSingle }: EmbeddingsFormat): JsonObject {
  const embeddings = vectors.map(values => ({ values }))
  return {
    ...isSingle ? { embedding: embeddings[0] ?? { values: [] } } : { embeddings },
    ...inputTokens !== null && { usageMetadata: { promptTokenCount: inputTokens } },
  }
}
