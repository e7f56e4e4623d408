import { count, list, member, record } from '../json.ts'
import { inputTokens, promptTokens } from '../prompt.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, type SimulatedResponse } from '../simulated-response.ts'
import { countUsage, figure } from '../usage.ts'

const CHAT_DIMENSIONS = 1536
const GENERATE_DIMENSIONS = 768
const MAX_DIMENSIONS = 8192

/** POST /v1/embeddings. Vectors are floats, or base64 of little-endian float32, which OpenAI's clients request by default. */
export function embeddings(request: SimulatedRequest): SimulatedResponse {
  const { json: body, behaviour } = request
  const inputs = inputsOf(body['input'])
  const dimensions = dimensionsOf(body['dimensions'], CHAT_DIMENSIONS)
  const data = inputs.map((input, index) => {
    const vector = embed(JSON.stringify(input), dimensions)
    const embedding = body['encoding_format'] === 'base64' ? base64(vector) : Array.from(vector)
    return { object: 'embedding', index, embedding }
  })
  const tokens = figure(behaviour, countUsage(behaviour, inputTokens(body['input']), 0, 0).input)
  const usage = behaviour.usage === 'none' ? undefined : { prompt_tokens: tokens, total_tokens: tokens }
  return json({ object: 'list', data, model: request.model, usage })
}

/** POST /v1beta/models/{model}:embedContent */
export function embedContent(request: SimulatedRequest): SimulatedResponse {
  const { json: body } = request
  const tokens = promptTokens(body['content'])
  return json({ embedding: embedOne(body), usageMetadata: embedUsage(request, tokens) })
}

/** POST /v1beta/models/{model}:batchEmbedContents */
export function batchEmbedContents(request: SimulatedRequest): SimulatedResponse {
  const requests = list(request.json['requests']).map(record)
  const tokens = requests.reduce((sum, one) => sum + promptTokens(one['content']), 0)
  return json({ embeddings: requests.map(embedOne), usageMetadata: embedUsage(request, tokens) })
}

function embedOne(body: Readonly<Record<string, unknown>>): { values: number[] } {
  const asked = member(body, 'outputDimensionality')
    ?? member(record(member(body, 'embedContentConfig')), 'outputDimensionality')
  const dimensions = dimensionsOf(asked, GENERATE_DIMENSIONS)
  return { values: Array.from(embed(JSON.stringify(body['content'] ?? ''), dimensions)) }
}

function embedUsage({ behaviour }: SimulatedRequest, tokens: number): unknown {
  if (behaviour.usage === 'none') return undefined
  const reported = figure(behaviour, countUsage(behaviour, tokens, 0, 0).input)
  return { promptTokenCount: reported, totalTokenCount: reported }
}

/** The inputs. An input is a text or an array of token numbers; an array of inputs is several inputs. */
function inputsOf(input: unknown): readonly unknown[] {
  return Array.isArray(input) && typeof input[0] !== 'number' ? input : [input ?? '']
}

function dimensionsOf(value: unknown, fallback: number): number {
  return Math.min(Math.max(count(value, fallback), 1), MAX_DIMENSIONS)
}

/** A unit vector that depends only on the text (FNV-1a is the seed of xorshift32). */
function embed(text: string, dimensions: number): Float32Array {
  let state = 0x811c9dc5
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193)
  state ||= 1
  const vector = new Float32Array(dimensions)
  let squares = 0
  for (let i = 0; i < dimensions; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    const value = state / 0x80000000
    vector[i] = value
    squares += value * value
  }
  const length = Math.sqrt(squares)
  return vector.map(value => value / length)
}

function base64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4)
  return bytes.toString('base64')
}
