import { GatewayError } from '../../base/errors.ts'
import type { VertexConfig } from '../../config/types.ts'
import { CREDENTIAL_PROJECT, type NativeRequest, type Provider, type ProviderAddress } from '../shared/provider.ts'
import { claudeBody } from './claude-body.ts'
import { readError } from './errors.ts'
import { isPredicted, predictBody, readPrediction } from './predict.ts'

/** The version and, for a project, the location at the beginning of a path of the Gemini API or of Vertex AI. */
const PREFIX = /^\/(v1(?:alpha|beta1?)?)\/(?:projects\/[^/]+\/locations\/[^/]+\/)?/i
const MODEL_PREFIX = /^(?:models\/|publishers\/google\/models\/)/i
const EMBED_METHOD = /(?::|%3a)[a-z]+$/i
/** Names of Claude's models, which Vertex AI serves by a separate API. */
const CLAUDE = /^claude-/i

/**
 * Serves Gemini's API with a project and a location in the path, and Anthropic's API with the model in the path. Source: Google Cloud's
 * "Method: publishers.models.generateContent", "Request predictions with Claude models" and "Count tokens for Claude models".
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

/** Drops the query, in which clients name betas, because Google refuses unknown parameters. */
function claudeAddress(parent: string, request: NativeRequest): ProviderAddress {
  const models = `/v1/${parent}/publishers/anthropic/models`
  if (isTokenCount(request)) return { path: `${models}/count-tokens:rawPredict`, query: '' }
  const { endpoint, model, stream, path } = request
  if (endpoint.name !== 'messages' || model === null) throw notThere(path)
  return { path: `${models}/${modelSegment(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`, query: '' }
}

/** Replaces the version in the path, because the Gemini API and Vertex AI have different versions. */
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

/** Encodes a model's name, but keeps the `@` in names such as `claude-haiku-4-5@20251001`. */
function modelSegment(model: string): string {
  return encodeURIComponent(model).replace('%40', '@')
}
