import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../base/errors.ts'
import { CHAT_AT_GOOGLE, VERSION } from './endpoint/google-paths.ts'
import { PROTOCOLS } from './index.ts'
import { DEFAULT_PROTOCOL, KNOWN_PATHS, OTHER, STATUS } from './known-paths.ts'
import { canonicalPath, customEndpointPath, deploymentPath } from './openai-paths.ts'
import { trimPath, withPathModel } from './endpoint/classified.ts'
import type { Classified, ClientFormat, Endpoint } from './endpoint/protocol.ts'

/** The error format for paths that do not determine the protocol. */
export const DEFAULT_FORMAT: ClientFormat = DEFAULT_PROTOCOL.format

/** Prefixes of API paths, as error messages list them. */
export const API_PREFIXES = '/v1, /v1alpha, /v1beta, /v1beta1, /openai, /upload and /download'

const API_PATH = new RegExp(`^/(?:openai|(?:(?:up|down)load/)?${VERSION})/`, 'i')

/**
 * Classifies a normalised path without its query. An unknown path is the endpoint `other` of the protocol that the path's prefix names.
 * Ignores case, a final slash, and parameters after a semicolon, because some upstreams ignore them too: otherwise such a path would be
 * neither metered nor checked.
 */
export function classifyPath(path: string): Classified {
  const fixed = KNOWN_PATHS.get(path)
  if (fixed) return fixed
  const plain = path.toLowerCase()
  return KNOWN_PATHS.get(trimPath(plain)) ?? googleChatPath(path, plain) ?? deploymentPath(path, plain) ?? azurePath(plain)
    ?? customEndpointPath(path, plain) ?? ownPath(path, plain)
}

const CLASSIFIERS = [...PROTOCOLS.slice(1), DEFAULT_PROTOCOL].flatMap(({ classify }) => classify ?? [])

function ownPath(path: string, plain: string): Classified {
  for (const classify of CLASSIFIERS) {
    const found = classify(path, plain)
    if (found) return found
  }
  return OTHER
}

/** All endpoints with a known name, each at its usual path. In the path, `{model}` stands for the name of the model. */
export function knownEndpoints(): { readonly path: string; readonly endpoint: Endpoint }[] {
  return [...PROTOCOLS.flatMap(({ paths, modelPaths = [] }) => [...paths, ...modelPaths]), STATUS].map(([path, endpoint]) => ({ path, endpoint }))
}

/**
 * Refuses paths that servers read differently. Most servers read an escaped slash outside a model's name as a slash, and some drop
 * everything after a semicolon in any part. If the model's name may contain unescaped slashes, its last part is uncertain.
 * @throws GatewayError bad_request_target
 */
export function checkPathEncoding(path: string, classified: Classified): void {
  if (!path.includes('%') && !path.includes(';')) return
  const { endpoint: { modelIn }, pathModelStart: start, pathModelEnd: end } = classified
  const others = path.slice(0, start) + path.slice(end)
  if (/%2f/i.test(others)) throw new GatewayError('bad_request_target', "only a model's name may contain an escaped slash")
  const apart = modelIn === 'deployment' ? path : others
  const parameters = apart.indexOf(';')
  if (parameters === -1 || !apart.includes('/', parameters)) return
  if (isApiPath(path.replace(/;[^/]*/g, ''))) {
    throw new GatewayError('bad_request_target', 'only the last part of a path may have parameters')
  }
}

/**
 * The error format that a caller expects. If protocols share the path, the headers decide.
 * @param hasGoogleKey the key was sent as `?key=`
 */
export function callerFormat(endpoint: Endpoint, headers: IncomingHttpHeaders, hasGoogleKey: boolean): ClientFormat {
  if (!endpoint.formatByCaller) return endpoint.format
  return PROTOCOLS.findLast(({ isCaller }) => isCaller?.(headers, hasGoogleKey))?.format ?? endpoint.format
}

/** Tells whether the path is for a WebSocket whose first message names the model. */
export function namesModelInMessage(path: string): boolean {
  return PROTOCOLS.some(({ modelInMessage }) => modelInMessage?.test(path))
}

/** Tells whether the path belongs to the API, even if no route matches. Requests for other paths get a response without a key. */
export function isApiPath(path: string): boolean {
  return API_PATH.test(path)
}

/** Tells whether the path calls a model even if the request does not name one. */
export function isModelCallPath(path: string): boolean {
  return PROTOCOLS.some(({ modelCalls }) => modelCalls?.test(path))
}

/** Classifies Google's paths for OpenAI's protocol. */
function googleChatPath(path: string, plain: string): Classified | null {
  const prefix = CHAT_AT_GOOGLE.exec(plain)?.[0]
  if (prefix === undefined) return null
  const rest = `/v1/${plain.slice(prefix.length)}`
  // No server has paths with the prefix twice. Recursion would scan the rest of the path at each repeated prefix.
  if (CHAT_AT_GOOGLE.test(rest)) return OTHER
  const own = DEFAULT_PROTOCOL.classify?.(rest, rest)
  const usual = own ?? classifyPath(rest)
  if (usual.pathModel === null) return usual.endpoint.format.isOpenais ? usual : OTHER
  if (!own) return OTHER
  const moved = prefix.length - '/v1/'.length
  return withPathModel(own.endpoint, path, own.pathModelStart + moved, own.pathModelEnd + moved)
}

/** Classifies Azure's paths outside deployments. Azure's list of models is `other`, because it is not the gateway's own list. */
function azurePath(plain: string): Classified | null {
  const path = canonicalPath(plain)
  if (path === null) return null
  const usual = classifyPath(path)
  const { endpoint, pathModel } = usual
  return endpoint.format.isOpenais && pathModel === null && endpoint.ownResponse === null ? usual : OTHER
}
