import { isObject } from '../../base/is-object.ts'
import { appendToList, fieldsOf, reduceLimits } from '../json/body-edits.ts'
import { objectIn, objectsIn, hasValue, addPriorUsage } from '../events/resumable-stream.ts'
import type { PriorUsage, StreamProtocol, EventTranslation, Json } from '../events/resumable-stream.ts'
import type { Edit } from '../json/splice.ts'

export function generateText(chunk: Json): string {
  return partsOf(chunk).map(({ text }) => (typeof text === 'string' ? text : '')).join('')
}

export function asksForSeveralCandidates(request: Json): boolean {
  return Number(configValue(request, 'candidateCount', 'candidate_count') ?? 1) > 1
}

/** Why the response to the request cannot be continued; null = it can. */
export function generateObstacle(request: Json): string | null {
  const wish = (name: string, old: string) => configValue(request, name, old)
  const type = wish('responseMimeType', 'response_mime_type')
  const isPlain = type === undefined || type === 'text/plain'
  const hasSchema = hasValue(wish('responseSchema', 'response_schema')) || hasValue(wish('responseJsonSchema', 'response_json_schema'))
  if (!isPlain || hasSchema) return 'structured output was asked for'
  if (asksForSeveralCandidates(request)) return 'several answers were asked for'
  if (hasValue(wish('responseLogprobs', 'response_logprobs'))) return 'log probabilities were asked for'
  const modalities = wish('responseModalities', 'response_modalities')
  if (Array.isArray(modalities) && modalities.some(each => String(each).toUpperCase() !== 'TEXT')) {
    return 'something other than text was asked for'
  }
  return Array.isArray(request['contents']) ? null : 'the request has no contents'
}

function configValue(request: Json, name: string, old: string): unknown {
  const config = { ...objectIn(request, 'generation_config'), ...objectIn(request, 'generationConfig') }
  return config[name] ?? config[old]
}

export class GenerateStreamProtocol implements StreamProtocol {
  readonly endMarker = ''
  readonly underWay = null
  finished = false
  readonly missing = null
  #identity: Json = {}
  #started = false

  read(chunk: Json): string | null {
    if (!this.#started) {
      const { responseId, modelVersion } = chunk
      this.#identity = { ...responseId !== undefined && { responseId }, ...modelVersion !== undefined && { modelVersion } }
      this.#started = true
    }
    const candidates = objectsIn(chunk, 'candidates')
    if (candidates.length > 1) return 'the stream has several choices'
    if (this.completes(chunk)) this.finished = true
    for (const part of partsOf(chunk)) {
      if (part['thought'] === true) return 'the stream has a thought'
      const other = Object.keys(part).find(name => !['text', 'thought', 'thoughtSignature'].includes(name))
      if (other !== undefined) return `the stream has a part of the type ${other}`
    }
    return null
  }

  completes(chunk: Json): boolean {
    return hasValue(objectsIn(chunk, 'candidates')[0]?.['finishReason'])
  }

  edits(body: Buffer, text: string, spent: number): Edit[] {
    const fields = fieldsOf(body, ['contents', 'generationConfig', 'generation_config'])
    const limits = [fields.get('generationConfig'), fields.get('generation_config')].flatMap(config => {
      if (config?.type !== 'object') return []
      return [...fieldsOf(body, ['maxOutputTokens', 'max_output_tokens'], config.start, config.end).values()]
    })
    return [
      ...text === '' ? [] : appendToList(body, fields.get('contents'), { role: 'model', parts: [{ text }] }),
      ...reduceLimits(body, limits, spent),
    ]
  }

  createTranslation(before: () => PriorUsage): EventTranslation {
    return {
      translate: (chunk, text) => {
        const whole: Json = { ...chunk, ...this.#identity }
        const { usageMetadata } = chunk
        if (isObject(usageMetadata)) whole['usageMetadata'] = totalUsage(usageMetadata, before())
        const [candidate, ...others] = objectsIn(chunk, 'candidates')
        if (candidate === undefined) return [whole]
        const content = objectIn(candidate, 'content')
        const parts = partsOf(chunk).map(part => withText(part, text))
        return [{ ...whole, candidates: [{ ...candidate, content: { ...content, parts } }, ...others] }]
      },
      render: chunk => `data: ${JSON.stringify(chunk)}\r\n\r\n`,
    }
  }
}

/** Adds the usage of earlier responses. The second response may lack counts, because proto3 JSON omits zeros. */
function totalUsage(metadata: Json, { inputTokens, cachedInputTokens, outputTokens }: PriorUsage): Json {
  return addPriorUsage(metadata, { promptTokenCount: inputTokens, totalTokenCount: (inputTokens ?? 0) + (outputTokens ?? 0) }, {
    ...outputTokens && { candidatesTokenCount: outputTokens },
    ...cachedInputTokens && { cachedContentTokenCount: cachedInputTokens },
  })
}

/** Applies `text` to a text part. Thoughts stay unchanged, because the gateway does not continue thoughts. */
function withText(part: Json, text: (part: string) => string): Json {
  const isText = typeof part['text'] === 'string' && part['thought'] !== true
  return isText ? { ...part, text: text(part['text'] as string) } : part
}

function partsOf(chunk: Json): Json[] {
  return objectsIn(objectIn(objectsIn(chunk, 'candidates')[0] ?? {}, 'content'), 'parts')
}
