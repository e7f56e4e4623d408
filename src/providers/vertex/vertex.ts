import { GatewayError } from '../../base/errors.ts'
import type { VertexConfig } from '../../config/types.ts'
import { CREDENTIAL_PROJECT, type NativeRequest, type Provider, type ProviderAddress } from '../shared/provider.ts'
import { claudeBody } from './claude-body.ts'
import { readError } from './errors.ts'
import { isPredicted, predictBody, readPrediction } from './predict.ts'

/** Version and place of a resource: of the Gemini API, of Vertex AI's express mode, and for a project. */
const PREFIX = /^\/(v1(?:alpha|beta1?)?)\/(?:projects\/[^/]+\/locations\/[^/]+\/)?/i
const MODEL_PREFIX = /^(?:models\/|publishers\/google\/models\/)/i
const EMBED_METHOD = /(?::|%3a)[a-z]+$/i
/** Vertex AI serves Claude by a separate API. */
const CLAUDE = /^claude-/i

/**
 * Gemini's API for a project and a location, and Anthropic's with the model in the path. Source: Google Cloud's "Method:
 * publishers.models.generateContent", "Request predictions with Claude models" and "Count tokens for Claude models".
 */
export function vertex({ project, location }: VertexConfig): Provider {
  const parent = `projects/${project === null ? CREDENTIAL_PROJECT : encodeURIComponent(project)}/locations/${location}`
  return {
    addressOf: request => (isMessages(request) ? claudeAddress(parent, request) : geminiAddress(parent, request)),
    bodyOf: (request, body) => {
      if (isMessages(request)) return claudeBody(body, isTokenCount(request))
      return isPredicted(request) ? predictBody(body) : body
    },
    readResponse: (request, status, headers) => {
      if (status >= 400) return readError(isMessages(request), status, headers)
      return status < 300 && isPredicted(request) ? readPrediction(request, headers) : { headers, decoder: null }
    },
    speaks: model => (model === null ? null : [CLAUDE.test(model) ? 'messages' : 'generate']),
  }
}

function isMessages({ endpoint }: NativeRequest): boolean {
  return endpoint.protocol === 'messages'
}

function isTokenCount({ endpoint }: NativeRequest): boolean {
  return endpoint.name === 'messages.count_tokens'
}

/** No query: clients name betas in it, and Google refuses unknown parameters. */
function claudeAddress(parent: string, request: NativeRequest): ProviderAddress {
  const models = `/v1/${parent}/publishers/anthropic/models`
  if (isTokenCount(request)) return { path: `${models}/count-tokens:rawPredict`, query: '' }
  const { endpoint, model, stream, path } = request
  if (endpoint.name !== 'messages' || model === null) throw notThere(path)
  return { path: `${models}/${modelSegment(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`, query: '' }
}

/** Clients of Vertex AI use a version that the Gemini API does not have, and the other way round. */
function geminiAddress(parent: string, request: NativeRequest): ProviderAddress {
  const { path, query } = request
  const [prefix, version] = PREFIX.exec(path) ?? []
  if (prefix === undefined) throw notThere(path)
  const named = path.slice(prefix.length).replace(MODEL_PREFIX, 'publishers/google/models/')
  const resource = isPredicted(request) ? named.replace(EMBED_METHOD, ':predict') : named
  return { path: `/${version?.toLowerCase() === 'v1beta1' ? 'v1beta1' : 'v1'}/${parent}/${resource}`, query }
}

function notThere(path: string): GatewayError {
  return new GatewayError('not_translatable', `Vertex AI does not serve ${path}`)
}

/** Google writes `claude-haiku-4-5@20251001`. */
function modelSegment(model: string): string {
  return encodeURIComponent(model).replace('%40', '@')
}
