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

/** The format of what the gateway says where no path tells the protocol. */
export const DEFAULT_FORMAT: ClientFormat = OTHER.endpoint.format

/** What the paths of the API begin with, for messages. */
export const API_PREFIXES = '/v1, /v1alpha, /v1beta, /v1beta1, /openai, /upload and /download'

/** Whatever is part of the API, in any case of letters. */
const API_PATH = new RegExp(`^/(?:openai|(?:(?:up|down)load/)?${VERSION})/`, 'i')

/**
 * Paths of OpenAI's API, and a batch's, that ask a model which need not be named: it has a default, or stands
 * in a file, with an assistant or in a session.
 */
const MODEL_CALL_PATHS = new RegExp(
  '/(?:batches|images/variations|videos(?:/edits|/extensions|/[^/]+/remix)?|(?:threads|evals)(?:/[^/]+)?/runs'
  + '|submit_tool_outputs|realtime/calls)/?(?:;[^/]*)?$',
  'i',
)

/**
 * Recognises a normalised path (without its query). Every path gets a response:
 * what is not known by name is `other`, in the protocol family of its prefix.
 *
 * Some upstreams take letters in any case, a slash at the end, or parameters
 * behind a semicolon. A request that works there is known here for what it is,
 * or it would pass unmetered and uninspected.
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

/**
 * Every endpoint that is known by name, at the path that it usually has:
 * `{model}` stands for the model's name.
 */
export function knownEndpoints(): { readonly path: string; readonly endpoint: Endpoint }[] {
  return [
    ...[...KNOWN_PATHS].map(([path, { endpoint }]) => ({ path, endpoint })),
    ...VERBS.map(([verb, endpoint]) => ({ path: `/v1beta/models/{model}:${verb}`, endpoint })),
    { path: '/v1/models/{model}', endpoint: CHAT_MODEL_CARD },
    { path: '/v1beta/models/{model}', endpoint: GENERATE_MODEL_CARD },
  ]
}

/**
 * An escaped slash may stand in a model's name. Anywhere else most servers read it
 * as a slash: the path would be one to the routes and the meter, and another to them.
 * So it would where some leave out what stands behind a semicolon, in another part than
 * the last, whose name is read without it here too. Where the model may have slashes that are not escaped,
 * it is not certain which part is its last.
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
 * The format that a caller reads: the path decides it, except where several protocols ask for the same path and
 * only their headers tell them apart.
 *
 * @param hasGoogleKey the key came as `?key=`
 */
export function callerFormat(endpoint: Endpoint, headers: IncomingHttpHeaders, hasGoogleKey: boolean): ClientFormat {
  if (!endpoint.formatByCaller) return endpoint.format
  return PROTOCOLS.findLast(({ isCaller }) => isCaller?.(headers, hasGoogleKey))?.format ?? endpoint.format
}

/** Google's live API: the first message over its WebSocket names the model, whatever the query says. */
export function namesModelInMessage(path: string): boolean {
  return path.toLowerCase().includes('bidigeneratecontent')
}

/** Is the path part of the API, routed or not? Anything else is answered without asking for a key. */
export function isApiPath(path: string): boolean {
  return API_PATH.test(path)
}

/** Does the path ask a model that need not be named? */
export function isModelCallPath(path: string): boolean {
  return MODEL_CALL_PATHS.test(path)
}

/** The chat family's paths, behind another prefix than its own. */
function googleChatPath(path: string, plain: string, prefix: string): Classified {
  const cards = `${prefix}models/`
  if (plain.startsWith(cards) && plain.length > cards.length) return modelCardPath(path, cards, CHAT_MODEL_CARD) ?? OTHER
  const rest = `/v1/${plain.slice(prefix.length)}`
  // One inside the other is nobody's path, and each would be looked through to its end.
  if (CHAT_AT_GOOGLE.test(rest)) return OTHER
  const usual = classifyPath(rest)
  const isOfItself = isOpenai(usual.endpoint) && usual.pathModel === null
  return isOfItself ? usual : OTHER
}

/** What Azure has beside its deployments: it lists models of its own. */
function azurePath(path: string): Classified {
  const usual = classifyPath(path)
  const isOfItself = isOpenai(usual.endpoint) && usual.pathModel === null
  return isOfItself && usual.endpoint.ownResponse === null ? usual : OTHER
}
