import { GatewayError } from '../errors.ts'
import type { EndpointName, ProtocolName } from './names.ts'

/** What the request body of an endpoint is due to be; bytes are not looked into, whatever they are called. */
export type BodyKind = 'json' | 'form' | 'json_or_form' | 'any' | 'bytes' | 'none'

export interface Endpoint {
  readonly name: EndpointName
  readonly protocol: ProtocolName
  /** Methods that the path takes, as in an Allow header. */
  readonly methods: readonly string[]
  readonly body: BodyKind
  /** Where the model's name stands; `deployment`: in the path, whatever the body names. */
  readonly modelIn: 'body' | 'path' | 'deployment' | 'query' | 'none'
  /** Without a model the request is refused, whatever the routes say. */
  readonly modelRequired: boolean
  /** It takes requests of its own models, in its body or in a file that it names; absent = no. */
  readonly isBatch?: true
}

/** A path, recognised. */
export interface Classified {
  readonly endpoint: Endpoint
  /** The model as the path names it, percent-decoded; null where it does not. */
  readonly pathModel: string | null
  /** Where the model's name stands in the path, for a rename. */
  readonly pathModelStart: number
  readonly pathModelEnd: number
}

export const ANY_METHOD = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const POST = ['POST'] as const
const READ = ['GET', 'HEAD'] as const

const FIXED = new Map<string, Classified>(
  (
    [
      ['/v1/chat/completions', 'chat.completions', 'chat', POST, 'json', 'body', true],
      ['/v1/completions', 'completions', 'chat', POST, 'json', 'body', true],
      ['/v1/responses', 'responses', 'chat', POST, 'json', 'body', false],
      ['/v1/responses/compact', 'responses.compact', 'chat', POST, 'json', 'body', false],
      ['/v1/responses/input_tokens', 'responses.input_tokens', 'chat', POST, 'json', 'body', false],
      ['/v1/decisions', 'decisions', 'chat', POST, 'json', 'body', true],
      ['/v1/embeddings', 'embeddings', 'chat', POST, 'json', 'body', true],
      ['/v1/images/generations', 'images.generations', 'chat', POST, 'json', 'body', false],
      ['/v1/images/edits', 'images.edits', 'chat', POST, 'json_or_form', 'body', false],
      ['/v1/audio/transcriptions', 'audio.transcriptions', 'chat', POST, 'form', 'body', true],
      ['/v1/audio/translations', 'audio.translations', 'chat', POST, 'form', 'body', true],
      ['/v1/audio/speech', 'audio.speech', 'chat', POST, 'json', 'body', true],
      ['/v1/realtime', 'realtime', 'chat', READ, 'none', 'query', false],
      ['/v1/messages', 'messages', 'messages', POST, 'json', 'body', true],
      ['/v1/messages/count_tokens', 'messages.count_tokens', 'messages', POST, 'json', 'body', true],
      ['/v1/models', 'models.list', 'chat', READ, 'none', 'none', false],
      ['/v1beta/models', 'models.list', 'generate', READ, 'none', 'none', false],
      ['/v1beta/interactions', 'interactions', 'generate', POST, 'json', 'body', false],
      ['/api/status', 'status', 'chat', READ, 'none', 'none', false],
    ] as const
  ).map(([path, name, protocol, methods, body, modelIn, modelRequired]) => [
    path,
    inPath({ name, protocol, methods, body, modelIn, modelRequired }),
  ]),
)

const VERBS = [
  ['generateContent', 'generate.content'],
  ['streamGenerateContent', 'generate.stream'],
  ['countTokens', 'generate.count_tokens'],
  ['embedContent', 'generate.embed'],
  ['batchEmbedContents', 'generate.batch_embed'],
] as const

/** The versions of Google's APIs that serve no other family; clients of Vertex AI call the last. */
const GOOGLES_VERSION = 'v1(?:alpha|beta1?)'
const VERSION = `${GOOGLES_VERSION}?`
const GENERATE_PREFIX = new RegExp(`^/${GOOGLES_VERSION}/`)

/** They are forwarded as they are, and those behind GENERATE_PREFIX too; of each the path tells the model. */
const OTHER_VERBS = ['predict', 'predictLongRunning', 'batchGenerateContent', 'asyncBatchEmbedContent']

const OF_A_MODEL: Endpoint = {
  name: 'other', protocol: 'generate', methods: ANY_METHOD, body: 'any', modelIn: 'path',
  modelRequired: false,
}

/** To ask what became of a video or a batch costs nothing. */
const OPERATION: Endpoint = { ...OF_A_MODEL, name: 'generate.operation' }

const GENERATE_VERBS = new Map<string, Endpoint>([
  ...VERBS.map(([verb, name]): [string, Endpoint] => [
    verb.toLowerCase(),
    { name, protocol: 'generate', methods: POST, body: 'json', modelIn: 'path', modelRequired: true },
  ]),
  ...OTHER_VERBS.map((verb): [string, Endpoint] => [verb.toLowerCase(), OF_A_MODEL]),
])

/** At Vertex AI a video is asked for by a verb. */
const PUBLISHED_VERBS = new Map([...GENERATE_VERBS, ['fetchpredictoperation', OPERATION]])

/** Claude at Vertex AI: the path has the model, and the body is that of the messages protocol. */
const RAW_VERBS = new Map<string, Endpoint>(
  ['rawPredict', 'streamRawPredict'].map(verb => [verb.toLowerCase(), {
    name: 'messages', protocol: 'messages', methods: POST, body: 'json', modelIn: 'path', modelRequired: true,
  }]),
)
const COUNT_RAW = /^count-tokens(?::|%3a)rawpredict/

/** Models at Vertex AI, with a project or without, and what an endpoint of the project's own serves. */
const PUBLISHED =
  new RegExp(`^/${VERSION}/(?:projects(?:/[^/]+){3}/)?(?:publishers/([^/]+)/models|endpoints)/`)
/** Where a project's requests are served, at Vertex AI. */
const PLACE = 'projects/[^/]+/locations/[^/]+'
/** Gemini's interactions; at Vertex AI behind a project. */
const INTERACTIONS = new RegExp(`^/${VERSION}(?:/${PLACE})?/interactions(/|$)`)
/** Where Gemini's API and Vertex AI speak chat. */
const CHAT_AT_GOOGLE = new RegExp(`^/(?:v1beta/openai|${VERSION}/${PLACE}/endpoints/openapi)/`)

/** Azure's paths of one model, or OpenAI's of old, which LiteLLM's proxy has still. */
const DEPLOYMENTS = /^\/(?:openai(?:\/v1)?|v1)\/(?:deployments|engines)\//
/** What Azure has where all others have /v1. */
const AT_AZURE = /^\/openai(?:\/v1)?(?=\/)/i

/** By what stands behind the model. */
const OF_DEPLOYMENTS = new Map<string, Endpoint>(
  [...FIXED].filter(([, { endpoint }]) => endpoint.protocol === 'chat' && endpoint.modelIn === 'body')
    .map(([path, { endpoint }]) => [path.slice('/v1'.length), { ...endpoint, modelIn: 'deployment' }]),
)

const OF_A_DEPLOYMENT: Endpoint = { ...other('chat'), modelIn: 'deployment' }
/** SDKs that have a deployment of their own put it there, too. */
const BATCH_OF_A_DEPLOYMENT: Endpoint = { ...OF_A_DEPLOYMENT, isBatch: true }

const MODEL_CARD: Record<'chat' | 'generate', Endpoint> = {
  chat: modelCard('chat'),
  generate: modelCard('generate'),
}

const OTHER: Record<ProtocolName, Classified> = {
  chat: inPath(other('chat')),
  messages: inPath(other('messages')),
  generate: inPath(other('generate')),
}

/** Files of Gemini's on their way: its client calls the pieces of any of them JSON. */
const MEDIA = inPath({ ...other('generate'), body: 'bytes', modelIn: 'none' })
const MEDIA_PATH = new RegExp(`^/(?:up|down)load/${VERSION}/`)
/** Whatever is part of the API, in any case of letters. */
const API_PATH = new RegExp(`^/(?:openai|(?:(?:up|down)load/)?${VERSION})/`, 'i')

const BATCH: Record<'chat' | 'messages', Classified> = {
  chat: inPath({ ...other('chat'), isBatch: true }),
  messages: inPath({ ...other('messages'), isBatch: true }),
}
const BATCH_PATH = /^\/v1\/(?:messages\/)?batches(?:[/;]|$)/

/**
 * Recognises a normalised path (without its query). Every path gets an answer:
 * what is not known by name is `other`, in the protocol family of its prefix.
 *
 * Some upstreams take letters in any case, a slash at the end, or parameters
 * behind a semicolon. A request that works there is known here for what it is,
 * or it would pass unmetered and uninspected.
 */
export function classifyPath(path: string): Classified {
  const fixed = FIXED.get(path)
  if (fixed) return fixed
  const plain = path.toLowerCase()
  const prefix = GENERATE_PREFIX.exec(plain)?.[0]
  const bare = prefix === undefined ? bareOf(plain) : `/v1beta/${bareOf(plain).slice(prefix.length)}`
  const interactions = INTERACTIONS.exec(bare)
  const known = FIXED.get(interactions?.[1] === '' ? '/v1beta/interactions' : bare)
  if (known) return known
  if (interactions) return OTHER.generate
  const chat = CHAT_AT_GOOGLE.exec(plain)
  if (chat) return chatPath(path, plain, chat[0])
  const deployments = DEPLOYMENTS.exec(plain)
  if (deployments) return deployedPath(path, plain, deployments[0].length)
  const usual = usualPath(plain)
  if (usual !== null) return azurePath(usual)
  const published = PUBLISHED.exec(plain)
  if (published) return publishedPath(path, plain, published) ?? OTHER[prefix ? 'generate' : 'chat']
  if (prefix) return generatePath(path, plain, prefix) ?? OTHER.generate
  if (plain.startsWith('/v1/tunedmodels/')) return generatePath(path, plain, '/v1/') ?? OTHER.generate
  if (plain.startsWith('/v1/models/')) {
    return generatePath(path, plain, '/v1/') ?? cardPath(path, '/v1/models/', MODEL_CARD.chat)
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
    ...[...FIXED].map(([path, { endpoint }]) => ({ path, endpoint })),
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
export function checkSpelling(path: string, classified: Classified): void {
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
export function isOwn({ name }: Endpoint): boolean {
  return name === 'status' || name === 'models.list' || name === 'models.get'
}

/** Does a WebSocket to it carry responses of the model's, one after the other? */
export function isSession({ name }: Endpoint): boolean {
  return name === 'responses' || name === 'realtime'
}

/** Google's live API: the first message over its WebSocket names the model, whatever the query says. */
export function namesModelInside(path: string): boolean {
  return path.toLowerCase().includes('bidigeneratecontent')
}

/** Is it a path of the chat family's as Google has them? */
export function isChatAtGoogle(path: string): boolean {
  return CHAT_AT_GOOGLE.test(path.toLowerCase())
}

/** The path under /v1 that one of Azure's means; null where it is none of Azure's. */
export function usualPath(path: string): string | null {
  const prefix = AT_AZURE.exec(path)?.[0]
  return prefix === undefined ? null : `/v1${path.slice(prefix.length)}`
}

/** Is the path part of the API, routed or not? Anything else is answered without asking for a key. */
export function isApiPath(path: string): boolean {
  return API_PATH.test(path)
}

/** @param plain the path in lower case, as long as it is */
function generatePath(path: string, plain: string, prefix: string): Classified | null {
  const modelStart = plain.indexOf('/', prefix.length) + 1
  if (modelStart === 0) return null
  const collection = plain.slice(prefix.length, modelStart - 1)
  if (collection !== 'models' && collection !== 'tunedmodels') return null
  const known = verbPath(path, plain, modelStart, GENERATE_VERBS)
  if (known) return known
  const colon = plain.lastIndexOf(':')
  if (prefix !== '/v1/' && colon > modelStart) return named(OF_A_MODEL, path, modelStart, colon)
  if (prefix !== '/v1/' && colon === -1 && collection === 'models') {
    return cardPath(path, `${prefix}models/`, MODEL_CARD.generate)
  }
  return null
}

/** A verb that is known, or an operation, behind the model that begins at `modelStart`. */
function verbPath(
  path: string, plain: string, modelStart: number, verbs: ReadonlyMap<string, Endpoint>,
): Classified | null {
  const operation = plain.indexOf('/operations/', modelStart)
  if (operation > modelStart) return named(OPERATION, path, modelStart, operation)
  // An escaped colon is one to the vendor; in a model's name it is no verb's.
  for (const [at, length] of [[plain.lastIndexOf(':'), 1], [plain.lastIndexOf('%3a'), 3]] as const) {
    if (at <= modelStart) continue
    const endpoint = verbs.get(bareOf(plain.slice(at + length)))
    if (endpoint) return named(endpoint, path, modelStart, at)
  }
  return null
}

/**
 * Vertex AI's paths are Gemini's behind a project and a publisher, or an endpoint; Claude is asked in its own
 * protocol.
 */
function publishedPath(path: string, plain: string, [prefix, publisher]: RegExpExecArray): Classified | null {
  const modelStart = prefix.length
  if (publisher === 'anthropic' && COUNT_RAW.test(plain.slice(modelStart))) {
    return FIXED.get('/v1/messages/count_tokens') as Classified
  }
  const verbs = publisher === 'anthropic' ? RAW_VERBS : PUBLISHED_VERBS
  const known = verbPath(path, plain, modelStart, verbs)
  if (known || plain.length === modelStart) return known
  const isEndpoint = publisher === undefined
  const slash = isEndpoint ? plain.indexOf('/', modelStart) : -1
  if (slash > modelStart) return named(behindEndpoint(plain.slice(slash)), path, modelStart, slash)
  const colon = Math.max(plain.lastIndexOf(':'), isEndpoint ? plain.lastIndexOf('%3a') : -1)
  if (colon === modelStart || (isEndpoint && colon < modelStart)) return null
  return colon > modelStart ? named(OF_A_MODEL, path, modelStart, colon)
    : named(OPERATION, path, modelStart, path.length)
}

/** What serves chat there has its model in the path, whatever the body names. */
function behindEndpoint(rest: string): Endpoint {
  const usual = FIXED.get(bareOf(`/v1${rest}`))?.endpoint
  const speaksChat = usual?.protocol === 'chat' && usual.body === 'json' && usual.modelIn === 'body'
  return speaksChat ? { ...usual, modelIn: 'path' } : OF_A_MODEL
}

/** Without a slash at the end, or the parameters of its last part. */
function bareOf(path: string): string {
  const parameters = path.indexOf(';', path.lastIndexOf('/') + 1)
  if (parameters !== -1) return path.slice(0, parameters)
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/** The chat family's paths, behind another prefix than its own. */
function chatPath(path: string, plain: string, prefix: string): Classified {
  const cards = `${prefix}models/`
  if (plain.startsWith(cards) && plain.length > cards.length) return cardPath(path, cards, MODEL_CARD.chat)
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
  return isOfItself && !isOwn(usual.endpoint) ? usual : OTHER.chat
}

/** Clients write the model as it is: there may be slashes in it. */
function deployedPath(path: string, plain: string, modelStart: number): Classified {
  const bare = bareOf(plain)
  const last = bare.lastIndexOf('/')
  for (const slash of [bare.lastIndexOf('/', last - 1), last]) {
    const endpoint = slash > modelStart ? OF_DEPLOYMENTS.get(bare.slice(slash)) : undefined
    if (endpoint) return named(endpoint, path, modelStart, slash)
  }
  const slash = plain.indexOf('/', modelStart)
  const end = slash === -1 ? path.length : slash
  if (end === modelStart) return OTHER.chat
  const isBatch = BATCH_PATH.test(`/v1${plain.slice(end)}`)
  return named(isBatch ? BATCH_OF_A_DEPLOYMENT : OF_A_DEPLOYMENT, path, modelStart, end)
}

function cardPath(path: string, prefix: string, endpoint: Endpoint): Classified {
  if (path.length === prefix.length) return OTHER[endpoint.protocol]
  return named(endpoint, path, prefix.length, path.length)
}

function named(endpoint: Endpoint, path: string, start: number, end: number): Classified {
  const raw = path.slice(start, end)
  // The path was checked for well-formed escapes when it was normalised.
  const pathModel = raw.includes('%') ? decodeURIComponent(raw) : raw
  return { endpoint, pathModel, pathModelStart: start, pathModelEnd: end }
}

function inPath(endpoint: Endpoint): Classified {
  return { endpoint, pathModel: null, pathModelStart: 0, pathModelEnd: 0 }
}

function modelCard(protocol: 'chat' | 'generate'): Endpoint {
  return { name: 'models.get', protocol, methods: READ, body: 'none', modelIn: 'path', modelRequired: false }
}

function other(protocol: ProtocolName): Endpoint {
  return {
    name: 'other', protocol, methods: ANY_METHOD, body: 'any', modelIn: 'body', modelRequired: false,
  }
}
