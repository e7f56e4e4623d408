import type { IncomingHttpHeaders } from 'node:http'
import { chatCompletion } from './endpoints/chat.ts'
import { completion } from './endpoints/completion.ts'
import { batchEmbedContents, embedContent, embeddings } from './endpoints/embedding.ts'
import { Refusal, type Family } from './error.ts'
import { files } from './endpoints/file.ts'
import { countTokens, generateContent, streamGenerateContent } from './endpoints/generate.ts'
import { editImage, generateImage } from './endpoints/image.ts'
import { countMessageTokens, message } from './endpoints/messages.ts'
import { getModel, listModels } from './endpoints/model.ts'
import { moderate } from './endpoints/moderation.ts'
import { otherPath } from './endpoints/other.ts'
import type { SimulatedRequest } from './request.ts'
import { countInputTokens, createResponse } from './endpoints/response.ts'
import type { SimulatedResponse } from './simulated-response.ts'
import { speak } from './endpoints/speech.ts'
import { transcribe, translate } from './endpoints/transcription.ts'

export interface Endpoint {
  /** Allowed methods; null = any method. */
  readonly methods: readonly string[] | null
  /** What the body must be. */
  readonly bodyKind: 'json' | 'form' | 'any'
  readonly respond: (request: SimulatedRequest) => SimulatedResponse
}

export interface EndpointMatch {
  readonly endpoint: Endpoint
  /** The model in the path, decoded; '' = the path names no model. */
  readonly model: string
}

const POST = ['POST'] as const
const READ = ['GET', 'HEAD'] as const

const FIXED: ReadonlyMap<string, Endpoint> = new Map(Object.entries({
  '/v1/chat/completions': { methods: POST, bodyKind: 'json', respond: chatCompletion },
  '/v1/completions': { methods: POST, bodyKind: 'json', respond: completion },
  '/v1/responses': { methods: POST, bodyKind: 'json', respond: createResponse },
  '/v1/responses/input_tokens': { methods: POST, bodyKind: 'json', respond: countInputTokens },
  '/v1/embeddings': { methods: POST, bodyKind: 'json', respond: embeddings },
  '/v1/images/generations': { methods: POST, bodyKind: 'json', respond: generateImage },
  '/v1/images/edits': { methods: POST, bodyKind: 'form', respond: editImage },
  '/v1/audio/transcriptions': { methods: POST, bodyKind: 'form', respond: transcribe },
  '/v1/audio/translations': { methods: POST, bodyKind: 'form', respond: translate },
  '/v1/audio/speech': { methods: POST, bodyKind: 'json', respond: speak },
  '/v1/moderations': { methods: POST, bodyKind: 'json', respond: moderate },
  '/v1/files': { methods: null, bodyKind: 'any', respond: files },
  '/v1/messages': { methods: POST, bodyKind: 'json', respond: message },
  '/v1/messages/count_tokens': { methods: POST, bodyKind: 'json', respond: countMessageTokens },
  '/v1/models': { methods: READ, bodyKind: 'any', respond: listModels },
  '/v1beta/models': { methods: READ, bodyKind: 'any', respond: listModels },
  '/v1alpha/models': { methods: READ, bodyKind: 'any', respond: listModels },
  '/v1beta1/models': { methods: READ, bodyKind: 'any', respond: listModels },
} satisfies Record<string, Endpoint>))

const VERBS: ReadonlyMap<string, Endpoint> = new Map(Object.entries({
  generateContent: { methods: POST, bodyKind: 'json', respond: generateContent },
  streamGenerateContent: { methods: POST, bodyKind: 'json', respond: streamGenerateContent },
  countTokens: { methods: POST, bodyKind: 'json', respond: countTokens },
  embedContent: { methods: POST, bodyKind: 'json', respond: embedContent },
  batchEmbedContents: { methods: POST, bodyKind: 'json', respond: batchEmbedContents },
} satisfies Record<string, Endpoint>))

const FILE: Endpoint = { methods: null, bodyKind: 'any', respond: files }
const MODEL: Endpoint = { methods: READ, bodyKind: 'any', respond: getModel }
const OTHER: Endpoint = { methods: null, bodyKind: 'any', respond: otherPath }

/**
 * Finds the endpoint of a path.
 *
 * @param path the path without the query
 * @throws Refusal 400 for a path that cannot be decoded, 404 for a path outside /v1, /v1beta, /v1alpha and /v1beta1, 405 with `allow` for
 * another method
 */
export function locate(method: string, path: string): EndpointMatch {
  const located = find(method, path)
  if (located === null) throw new Refusal(404, `Nothing is served at ${path}.`)
  const { methods } = located.endpoint
  if (methods !== null && !methods.includes(method)) {
    throw new Refusal(405, `${method} is not allowed at ${path}.`, { allow: methods.join(', ') })
  }
  return located
}

/** The family whose format the response has. The path decides; if several families have the path, the caller's headers decide. */
export function familyOf(path: string, query: URLSearchParams, headers: IncomingHttpHeaders): Family {
  if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return 'messages'
  if (/^\/v1(?:alpha|beta)/.test(path) || verbOf(path) !== null) return 'generate'
  if (FIXED.has(path) && path !== '/v1/models') return 'chat'
  if (headers['anthropic-version'] !== undefined) return 'messages'
  if (headers['x-goog-api-key'] !== undefined || query.has('key')) return 'generate'
  return 'chat'
}

function find(method: string, path: string): EndpointMatch | null {
  const fixed = FIXED.get(path)
  if (fixed) return { endpoint: fixed, model: '' }
  const verb = method === 'POST' ? verbOf(path) : null
  if (verb) return { endpoint: verb.endpoint, model: decode(verb.model) }
  if (path.startsWith('/v1/files/')) return { endpoint: FILE, model: '' }
  const model = /^\/v1(?:alpha|beta1?)?\/(?:publishers\/[^/]+\/)?models\/(.+)$/.exec(path)?.[1]
  if (model !== undefined && method !== 'POST') return { endpoint: MODEL, model: decode(model) }
  return /^\/v1(?:alpha|beta1?)?\//.test(path) ? { endpoint: OTHER, model: '' } : null
}

/** Matches a path with a verb. Paths of Vertex AI also have a project, a publisher, or both. */
const VERB =
  /^\/v1(?:alpha|beta1?)?\/(?:projects(?:\/[^/]+){3}\/)?(?:publishers\/[^/]+\/)?(?:m|tunedM)odels\/(.+):(\w+)$/

function verbOf(path: string): { endpoint: Endpoint; model: string } | null {
  const match = VERB.exec(path)
  const endpoint = match && VERBS.get(match[2]!)
  return endpoint ? { endpoint, model: match[1]! } : null
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Refusal(400, 'The model in the path is not well encoded.')
  }
}
