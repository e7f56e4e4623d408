import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../base/errors.ts'
import { canonicalPath, deploymentPath } from './azure-paths.ts'
import { CHAT_MODEL_CARD, OTHER, classifyChat } from './chat/paths.ts'
import { GENERATE_BATCH, GENERATE_MODEL_CARD, GENERATE_OTHER, GENERATE_PREFIX, VERBS, VERSION } from './generate/paths.ts'
import { BATCH_JOBS, CHAT_AT_GOOGLE, INTERACTIONS, PUBLISHER_PATH, publisherPath } from './google-paths.ts'
import { PROTOCOLS } from './index.ts'
import { KNOWN_PATHS, isOpenai } from './known-paths.ts'
import { modelCardPath, trimPath } from './endpoint/classified.ts'
import type { Classified, ClientFormat, Endpoint } from './endpoint/protocol.ts'

/** The error format if the path does not determine the protocol. */
export const DEFAULT_FORMAT: ClientFormat = OTHER.endpoint.format

/** Prefixes of API paths, for messages. */
export const API_PREFIXES = '/v1, /v1alpha, /v1beta, /v1beta1, /openai, /upload and /download'

/** Paths of the API, case-insensitive. */
const API_PATH = new RegExp(`^/(?:openai|(?:(?:up|down)load/)?${VERSION})/`, 'i')

/**
 * Paths of OpenAI's API, including batches, that call a model without naming it in the request: a default, or one in
 * a file, an assistant or a session.
 */
const MODEL_CALL_PATHS = new RegExp(
  '/(?:batches|images/variations|videos(?:/edits|/extensions|/[^/]+/remix)?|(?:threads|evals)(?:/[^/]+)?/runs'
  + '|submit_tool_outputs|realtime/calls)/?(?:;[^/]*)?$',
  'i',
)

/**
 * Classifies a normalised path (without its query). Every path gets a response: an unknown one is `other`, in the
 * protocol of its prefix.
 *
 * Some upstreams ignore the case of letters, a final slash, or parameters after a semicolon. A request that works
 * there must be recognized here, or it would pass unmetered and unchecked.
 */
export function classifyPath(path: string): Classified {
  const fixed = KNOWN_PATHS.get(path)
  if (fixed) return fixed
  const plain = path.toLowerCase()
  const prefix = GENERATE_PREFIX.exec(plain)?.[0]
  const bare = prefix === undefined ? trimPath(plain) : `/v1beta/${trimPath(plain).slice(prefix.length)}`
  const interactions = INTERACTIONS.exec(bare)
  const known = KNOWN_PATHS.get(interactions?.[1] === '' ? '/v1beta/interactions' : bare)
  if (known) return known
  if (interactions) return GENERATE_OTHER
  if (BATCH_JOBS.test(plain)) return GENERATE_BATCH
  const chat = CHAT_AT_GOOGLE.exec(plain)
  if (chat) return googleChatPath(path, plain, chat[0])
  const deployed = deploymentPath(path, plain)
  if (deployed) return deployed
  const usual = canonicalPath(plain)
  if (usual !== null) return azurePath(usual)
  const published = PUBLISHER_PATH.exec(plain)
  if (published) return publisherPath(path, plain, published) ?? (prefix ? GENERATE_OTHER : OTHER)
  for (const { classify } of PROTOCOLS) {
    const found = classify?.(path, plain)
    if (found) return found
  }
  return classifyChat(path, plain)
}

/** All endpoints with a known name, with their usual path: `{model}` stands for the model's name. */
export function knownEndpoints(): { readonly path: string; readonly endpoint: Endpoint }[] {
  return [
    ...[...KNOWN_PATHS].map(([path, { endpoint }]) => ({ path, endpoint })),
    ...VERBS.map(([verb, endpoint]) => ({ path: `/v1beta/models/{model}:${verb}`, endpoint })),
    { path: '/v1/models/{model}', endpoint: CHAT_MODEL_CARD },
    { path: '/v1beta/models/{model}', endpoint: GENERATE_MODEL_CARD },
  ]
}

/**
 * Refuses encodings that servers read differently. A model's name may contain an escaped slash; elsewhere most
 * servers read it as a slash, so routes and the meter would see another path than they do. Some servers drop
 * everything after a semicolon, in any part of the path; here only the last part may have parameters. If the model
 * may contain unescaped slashes, it is uncertain which part is the last.
 *
 * @throws GatewayError bad_request_target
 */
export function checkPathEncoding(path: string, classified: Classified): void {
  if (!path.includes('%') && !path.includes(';')) return
  const { endpoint: { modelIn }, pathModelStart: start, pathModelEnd: end } = classified
  const others = path.slice(0, start) + path.slice(end)
  if (/%2f/i.test(others)) {
    throw new GatewayError('bad_request_target', "only a model's name may contain an escaped slash")
  }
  const apart = modelIn === 'deployment' ? path : others
  const parameters = apart.indexOf(';')
  if (parameters === -1 || !apart.includes('/', parameters)) return
  if (isApiPath(path.replace(/;[^/]*/g, ''))) {
    throw new GatewayError('bad_request_target', 'only the last part of a path may have parameters')
  }
}

/**
 * The error format that a caller reads. The path decides it; if several protocols share the path, the headers decide.
 *
 * @param hasGoogleKey the key was sent as `?key=`
 */
export function callerFormat(endpoint: Endpoint, headers: IncomingHttpHeaders, hasGoogleKey: boolean): ClientFormat {
  if (!endpoint.formatByCaller) return endpoint.format
  return PROTOCOLS.findLast(({ isCaller }) => isCaller?.(headers, hasGoogleKey))?.format ?? endpoint.format
}

/** Is it a path of Google's live API, where the first WebSocket message names the model, whatever the query says? */
export function namesModelInMessage(path: string): boolean {
  return path.toLowerCase().includes('bidigeneratecontent')
}

/** Is the path part of the API, routed or not? Other paths get a response without a key. */
export function isApiPath(path: string): boolean {
  return API_PATH.test(path)
}

/** Does the path call a model that the request need not name? */
export function isModelCallPath(path: string): boolean {
  return MODEL_CALL_PATHS.test(path)
}

/** Chat paths under another prefix. */
function googleChatPath(path: string, plain: string, prefix: string): Classified {
  const cards = `${prefix}models/`
  if (plain.startsWith(cards) && plain.length > cards.length) return modelCardPath(path, cards, CHAT_MODEL_CARD) ?? OTHER
  const rest = `/v1/${plain.slice(prefix.length)}`
  // No server nests these prefixes, and each nested path would be scanned to its end.
  if (CHAT_AT_GOOGLE.test(rest)) return OTHER
  const usual = classifyPath(rest)
  const isOfItself = isOpenai(usual.endpoint) && usual.pathModel === null
  return isOfItself ? usual : OTHER
}

/** Azure's paths outside its deployments: its list of models is a different one. */
function azurePath(path: string): Classified {
  const usual = classifyPath(path)
  const isOfItself = isOpenai(usual.endpoint) && usual.pathModel === null
  return isOfItself && usual.endpoint.ownResponse === null ? usual : OTHER
}
