import { GatewayError } from '../base/errors.ts'
import { deploymentPath, canonicalPath } from './chat/azure-paths.ts'
import {
  CHAT_AT_GOOGLE, GENERATE_PREFIX, INTERACTIONS, MEDIA, MEDIA_PATH, PUBLISHER_PATH, VERBS, VERSION, generatePath,
  publisherPath,
} from './generate/paths.ts'
import { MODEL_CARD, OTHER, trimPath, modelCardPath, withoutPathModel, otherEndpoint } from './shared/classified.ts'
import type { Classified, Endpoint } from './shared/classified.ts'
import { BATCH_PATH, KNOWN_PATHS } from './shared/known-paths.ts'

/** Whatever is part of the API, in any case of letters. */
const API_PATH = new RegExp(`^/(?:openai|(?:(?:up|down)load/)?${VERSION})/`, 'i')

const BATCH: Record<'chat' | 'messages', Classified> = {
  chat: withoutPathModel({ ...otherEndpoint('chat'), isBatch: true }),
  messages: withoutPathModel({ ...otherEndpoint('messages'), isBatch: true }),
}

/**
 * Recognises a normalised path (without its query). Every path gets an answer:
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
  if (interactions) return OTHER.generate
  const chat = CHAT_AT_GOOGLE.exec(plain)
  if (chat) return googleChatPath(path, plain, chat[0])
  const deployed = deploymentPath(path, plain)
  if (deployed) return deployed
  const usual = canonicalPath(plain)
  if (usual !== null) return azurePath(usual)
  const published = PUBLISHER_PATH.exec(plain)
  if (published) return publisherPath(path, plain, published) ?? OTHER[prefix ? 'generate' : 'chat']
  if (prefix) return generatePath(path, plain, prefix) ?? OTHER.generate
  if (plain.startsWith('/v1/tunedmodels/')) return generatePath(path, plain, '/v1/') ?? OTHER.generate
  if (plain.startsWith('/v1/models/')) {
    return generatePath(path, plain, '/v1/') ?? modelCardPath(path, '/v1/models/', MODEL_CARD.chat)
  }
  if (MEDIA_PATH.test(plain)) return MEDIA
  const protocol = plain.startsWith('/v1/messages') ? 'messages' : 'chat'
  return (BATCH_PATH.test(plain) ? BATCH : OTHER)[protocol]
}

/**
 * Every endpoint that is known by name, at the path that it usually has:
 * `{model}` stands for the model's name.
 */
export function knownEndpoints(): { readonly path: string; readonly endpoint: Endpoint }[] {
  const { chat, generate } = MODEL_CARD
  return [
    ...[...KNOWN_PATHS].map(([path, { endpoint }]) => ({ path, endpoint })),
    ...VERBS.map(([verb]) => `/v1beta/models/{model}:${verb}`)
      .map(path => ({ path, endpoint: classifyPath(path).endpoint })),
    { path: '/v1/models/{model}', endpoint: chat },
    { path: '/v1beta/models/{model}', endpoint: generate },
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
    throw new GatewayError('bad_request_target', "only a model's name may hold an escaped slash")
  }
  const apart = modelIn === 'deployment' ? path : others
  const parameters = apart.indexOf(';')
  if (parameters === -1 || !apart.includes('/', parameters)) return
  if (isApiPath(path.replace(/;[^/]*/g, ''))) {
    throw new GatewayError('bad_request_target', 'only the last part of a path may have parameters')
  }
}

/** Does the gateway answer it itself? */
export function isServedByGateway({ name }: Endpoint): boolean {
  return name === 'status' || name === 'models.list' || name === 'models.get'
}

/** Does a WebSocket to it carry responses of the model's, one after the other? */
export function isSession({ name }: Endpoint): boolean {
  return name === 'responses' || name === 'realtime'
}

/** Is the path part of the API, routed or not? Anything else is answered without asking for a key. */
export function isApiPath(path: string): boolean {
  return API_PATH.test(path)
}

/** The chat family's paths, behind another prefix than its own. */
function googleChatPath(path: string, plain: string, prefix: string): Classified {
  const cards = `${prefix}models/`
  if (plain.startsWith(cards) && plain.length > cards.length) return modelCardPath(path, cards, MODEL_CARD.chat)
  const rest = `/v1/${plain.slice(prefix.length)}`
  // One inside the other is nobody's path, and each would be looked through to its end.
  if (CHAT_AT_GOOGLE.test(rest)) return OTHER.chat
  const usual = classifyPath(rest)
  const isOfItself = usual.endpoint.protocol === 'chat' && usual.pathModel === null
  return isOfItself ? usual : OTHER.chat
}

/** What Azure has beside its deployments: it lists models of its own. */
function azurePath(path: string): Classified {
  const usual = classifyPath(path)
  const isOfItself = usual.endpoint.protocol === 'chat' && usual.pathModel === null
  return isOfItself && !isServedByGateway(usual.endpoint) ? usual : OTHER.chat
}
