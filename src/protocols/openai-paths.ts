import { DEFAULT_PROTOCOL, KNOWN_PATHS, OTHER } from './known-paths.ts'
import { trimPath, withPathModel } from './endpoint/classified.ts'
import { PUBLISHER_PATH } from './endpoint/google-paths.ts'
import type { Classified, Endpoint } from './endpoint/protocol.ts'

/** Matches Azure's paths of one model, and OpenAI's older paths of this kind, which LiteLLM's proxy still has. */
const DEPLOYMENT_PREFIX = /^\/(?:openai(?:\/v1)?|v1)\/(?:deployments|engines)\//
const AZURE_PREFIX = /^\/openai(?:\/v1)?(?=\/)/i

/** OpenAI's endpoints that name the model in the body, changed to name it in `modelIn`. The keys are the paths without /v1. */
function movedEndpoints(modelIn: Endpoint['modelIn']): ReadonlyMap<string, Endpoint> {
  return new Map([...KNOWN_PATHS].filter(([, { endpoint }]) => endpoint.format.isOpenais && endpoint.modelIn === 'body')
    .map(([path, { endpoint }]) => [path.slice('/v1'.length), { ...endpoint, modelIn }]))
}

const DEPLOYMENT_ENDPOINTS = movedEndpoints('deployment')
const CUSTOM_ENDPOINTS = movedEndpoints('path')

const OTHER_DEPLOYMENT_ENDPOINT: Endpoint = { ...OTHER.endpoint, modelIn: 'deployment' }
/** An unknown path of a deployment may be a batch: SDKs with a fixed deployment send batches to such paths. */
const BATCH_DEPLOYMENT_ENDPOINT: Endpoint = { ...OTHER_DEPLOYMENT_ENDPOINT, isBatch: true }

/** The path under /v1 for a path of Azure; null = not a path of Azure. */
export function canonicalPath(path: string): string | null {
  const prefix = AZURE_PREFIX.exec(path)?.[0]
  return prefix === undefined ? null : `/v1${path.slice(prefix.length)}`
}

/** The first parts of paths that clients send without /v1 if their base URL lacks it. */
const UNVERSIONED = /^\/(?:audio|batches|chat|completions|embeddings|files|images|messages|models|moderations|realtime|rerank|responses)(?:\/|$)/i

/** The path under /v1 for a path that lacks this part; null = another path. */
export function versionedPath(path: string): string | null {
  return UNVERSIONED.test(path) ? `/v1${path}` : null
}

/**
 * Classifies the path of one model; null = another path. The model's name may contain unescaped slashes.
 * @param plain the path in lower case
 */
export function deploymentPath(path: string, plain: string): Classified | null {
  const modelStart = DEPLOYMENT_PREFIX.exec(plain)?.[0].length
  if (modelStart === undefined) return null
  const bare = trimPath(plain)
  const last = bare.lastIndexOf('/')
  for (const slash of [bare.lastIndexOf('/', last - 1), last]) {
    const endpoint = slash > modelStart ? DEPLOYMENT_ENDPOINTS.get(bare.slice(slash)) : undefined
    if (endpoint) return withPathModel(endpoint, path, modelStart, slash)
  }
  const slash = plain.indexOf('/', modelStart)
  const end = slash === -1 ? path.length : slash
  if (end === modelStart) return OTHER
  const rest = `/v1${plain.slice(end)}`
  const isBatch = DEFAULT_PROTOCOL.classify?.(rest, rest)?.endpoint.isBatch
  return withPathModel(isBatch ? BATCH_DEPLOYMENT_ENDPOINT : OTHER_DEPLOYMENT_ENDPOINT, path, modelStart, end)
}

/** Classifies the path of a chat endpoint at Vertex AI that names its model in the path; null = another path. @param plain in lower case */
export function customEndpointPath(path: string, plain: string): Classified | null {
  const published = PUBLISHER_PATH.exec(plain)
  if (!published || published[1] !== undefined) return null
  const modelStart = published[0].length
  const slash = plain.indexOf('/', modelStart)
  const endpoint = slash > modelStart ? CUSTOM_ENDPOINTS.get(trimPath(plain.slice(slash))) : undefined
  return endpoint?.body === 'json' ? withPathModel(endpoint, path, modelStart, slash) : null
}
