import { GatewayError } from '../../base/errors.ts'
import { asList, asObject, type JsonObject } from '../../protocols/neutral/json.ts'
import { decompressedOrRaw } from '../../protocols/http/decompress.ts'
import { parseBounded, parseRequest } from '../../base/json-size.ts'
import type { NativeRequest, ResponseReading } from '../shared/provider.ts'
import { WholeBody } from '../shared/whole-body.ts'
import { codingOf, withoutBodyHeaders } from './response-headers.ts'

/** Maximum bytes of a response. A batch of 100 vectors of 3,072 numbers has about 7 MB. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024
/** Embedding models that Vertex AI serves by the method `predict`. For other models, it has the methods of the Gemini API. */
const BY_PREDICT = /^(?:text-|textembedding-|gemini-embedding-001$)/i
const SINGLE = 'generate.embed'
const BATCH = 'generate.batch_embed'

interface Prediction {
  readonly embeddings?: { readonly values?: unknown, readonly statistics?: { readonly token_count?: unknown } }
}

/** @returns true = an embeddings request that must be converted for `predict` */
export function isPredicted({ endpoint: { name }, model }: NativeRequest): boolean {
  return (name === SINGLE || name === BATCH) && model !== null && BY_PREDICT.test(model)
}

/** Converts a request for `predict`. Source: "Text embeddings API" of Vertex AI. @throws GatewayError not_translatable, body_too_large */
export function predictBody(body: Buffer): Buffer {
  const parsed = asObject(parseRequest(body.toString('utf8'))) ?? {}
  const requests = parsed['requests'] === undefined ? [parsed] : asList(parsed['requests']).map(item => asObject(item) ?? {})
  const dimensions = requests[0] && eitherOf(requests[0], 'outputDimensionality', 'output_dimensionality')
  return Buffer.from(JSON.stringify({
    instances: requests.map(request => ({
      content: textOf(request), task_type: eitherOf(request, 'taskType', 'task_type'), title: request['title'],
    })),
    ...dimensions !== undefined && { parameters: { outputDimensionality: dimensions } },
  }))
}

/** @returns the value of a member in either spelling, because Google accepts both */
function eitherOf(request: JsonObject, camel: string, snake: string): unknown {
  return request[camel] ?? request[snake]
}

function textOf({ content }: JsonObject): string {
  const texts = asList(asObject(content)?.['parts']).map(part => asObject(part)?.['text'])
  if (!texts.every(text => typeof text === 'string')) {
    throw new GatewayError('not_translatable', 'at Vertex AI, this model embeds only text')
  }
  return texts.join('\n')
}

/** Converts a successful response of `predict` to the Gemini API's format. */
export function readPrediction({ endpoint: { name } }: NativeRequest, headers: readonly string[]): ResponseReading {
  const coding = codingOf(headers)
  const decoder = new WholeBody(body => embeddingsJson(decompressedOrRaw(body, coding), name === SINGLE), MAX_RESPONSE_BYTES)
  return { headers: withoutBodyHeaders(headers), decoder }
}

function embeddingsJson(body: Buffer, isSingle: boolean): string {
  const { predictions } = parseBounded(body.toString('utf8')) as { readonly predictions?: readonly Prediction[] }
  if (!Array.isArray(predictions)) throw new TypeError('there are no predictions')
  const embeddings = (predictions as readonly Prediction[]).map(({ embeddings: found }) => ({ values: found?.values }))
  const counts = (predictions as readonly Prediction[]).map(({ embeddings: found }) => found?.statistics?.token_count)
  const usage = counts.every(count => typeof count === 'number')
    ? { usageMetadata: { promptTokenCount: counts.reduce((sum, count) => sum + count, 0) } }
    : {}
  return JSON.stringify(isSingle ? { embedding: embeddings[0], ...usage } : { embeddings, ...usage })
}
