import { ANY_METHOD, MODEL_CARD, POST, trimPath, modelCardPath, withoutPathModel, withPathModel, otherEndpoint } from '../shared/classified.ts'
import type { Classified, Endpoint } from '../shared/classified.ts'
import { KNOWN_PATHS } from '../shared/known-paths.ts'

/** What is asked of a model, behind its name and a colon. */
export const VERBS = [
  ['generateContent', 'generate.content'],
  ['streamGenerateContent', 'generate.stream'],
  ['countTokens', 'generate.count_tokens'],
  ['embedContent', 'generate.embed'],
  ['batchEmbedContents', 'generate.batch_embed'],
] as const

/** The versions of Google's APIs that serve no other family; clients of Vertex AI call the last. */
const GOOGLE_VERSION = 'v1(?:alpha|beta1?)'
export const VERSION = `${GOOGLE_VERSION}?`
export const GENERATE_PREFIX = new RegExp(`^/${GOOGLE_VERSION}/`)

/** They are forwarded as they are, and those behind GENERATE_PREFIX too; of each the path tells the model. */
const OTHER_VERBS = ['predict', 'predictLongRunning', 'batchGenerateContent', 'asyncBatchEmbedContent']

const OTHER_MODEL_ENDPOINT: Endpoint = {
  name: 'other', protocol: 'generate', methods: ANY_METHOD, body: 'any', modelIn: 'path',
  modelRequired: false,
}

/** To ask what became of a video or a batch costs nothing. */
const OPERATION: Endpoint = { ...OTHER_MODEL_ENDPOINT, name: 'generate.operation' }

const GENERATE_VERBS = new Map<string, Endpoint>([
  ...VERBS.map(([verb, name]): [string, Endpoint] => [
    verb.toLowerCase(),
    { name, protocol: 'generate', methods: POST, body: 'json', modelIn: 'path', modelRequired: true },
  ]),
  ...OTHER_VERBS.map((verb): [string, Endpoint] => [verb.toLowerCase(), OTHER_MODEL_ENDPOINT]),
])

/** At Vertex AI a video is asked for by a verb. */
const PUBLISHER_VERBS = new Map([...GENERATE_VERBS, ['fetchpredictoperation', OPERATION]])

/** Claude at Vertex AI: the path has the model, and the body is that of the messages protocol. */
const RAW_VERBS = new Map<string, Endpoint>(
  ['rawPredict', 'streamRawPredict'].map(verb => [verb.toLowerCase(), {
    name: 'messages', protocol: 'messages', methods: POST, body: 'json', modelIn: 'path', modelRequired: true,
  }]),
)
const RAW_COUNT_TOKENS = /^count-tokens(?::|%3a)rawpredict/

/** Models at Vertex AI, with a project or without, and what an endpoint of the project's own serves. */
export const PUBLISHER_PATH =
  new RegExp(`^/${VERSION}/(?:projects(?:/[^/]+){3}/)?(?:publishers/([^/]+)/models|endpoints)/`)
/** Where a project's requests are served, at Vertex AI. */
const PROJECT_LOCATION = 'projects/[^/]+/locations/[^/]+'
/** Gemini's interactions; at Vertex AI behind a project. */
export const INTERACTIONS = new RegExp(`^/${VERSION}(?:/${PROJECT_LOCATION})?/interactions(/|$)`)
/** Where Gemini's API and Vertex AI speak chat. */
export const CHAT_AT_GOOGLE = new RegExp(`^/(?:v1beta/openai|${VERSION}/${PROJECT_LOCATION}/endpoints/openapi)/`)

/** Files of Gemini's on their way: its client calls the pieces of any of them JSON. */
export const MEDIA = withoutPathModel({ ...otherEndpoint('generate'), body: 'bytes', modelIn: 'none' })
export const MEDIA_PATH = new RegExp(`^/(?:up|down)load/${VERSION}/`)

/** Google's live API: the first message over its WebSocket names the model, whatever the query says. */
export function namesModelInMessage(path: string): boolean {
  return path.toLowerCase().includes('bidigeneratecontent')
}

/** Is it a path of the chat family's as Google has them? */
export function isChatAtGoogle(path: string): boolean {
  return CHAT_AT_GOOGLE.test(path.toLowerCase())
}

/** @param plain the path in lower case, as long as it is */
export function generatePath(path: string, plain: string, prefix: string): Classified | null {
  const modelStart = plain.indexOf('/', prefix.length) + 1
  if (modelStart === 0) return null
  const collection = plain.slice(prefix.length, modelStart - 1)
  if (collection !== 'models' && collection !== 'tunedmodels') return null
  const known = verbPath(path, plain, modelStart, GENERATE_VERBS)
  if (known) return known
  const colon = plain.lastIndexOf(':')
  if (prefix !== '/v1/' && colon > modelStart) return withPathModel(OTHER_MODEL_ENDPOINT, path, modelStart, colon)
  if (prefix !== '/v1/' && colon === -1 && collection === 'models') {
    return modelCardPath(path, `${prefix}models/`, MODEL_CARD.generate)
  }
  return null
}

/** A verb that is known, or an operation, behind the model that begins at `modelStart`. */
function verbPath(
  path: string, plain: string, modelStart: number, verbs: ReadonlyMap<string, Endpoint>,
): Classified | null {
  const operation = plain.indexOf('/operations/', modelStart)
  if (operation > modelStart) return withPathModel(OPERATION, path, modelStart, operation)
  // An escaped colon is one to the vendor; in a model's name it is no verb's.
  for (const [at, length] of [[plain.lastIndexOf(':'), 1], [plain.lastIndexOf('%3a'), 3]] as const) {
    if (at <= modelStart) continue
    const endpoint = verbs.get(trimPath(plain.slice(at + length)))
    if (endpoint) return withPathModel(endpoint, path, modelStart, at)
  }
  return null
}

/**
 * Vertex AI's paths are Gemini's behind a project and a publisher, or an endpoint; Claude is asked in its own
 * protocol.
 */
export function publisherPath(
  path: string, plain: string, [prefix, publisher]: RegExpExecArray,
): Classified | null {
  const modelStart = prefix.length
  if (publisher === 'anthropic' && RAW_COUNT_TOKENS.test(plain.slice(modelStart))) {
    return KNOWN_PATHS.get('/v1/messages/count_tokens') as Classified
  }
  const verbs = publisher === 'anthropic' ? RAW_VERBS : PUBLISHER_VERBS
  const known = verbPath(path, plain, modelStart, verbs)
  if (known || plain.length === modelStart) return known
  const isEndpoint = publisher === undefined
  const slash = isEndpoint ? plain.indexOf('/', modelStart) : -1
  if (slash > modelStart) return withPathModel(vertexEndpoint(plain.slice(slash)), path, modelStart, slash)
  const colon = Math.max(plain.lastIndexOf(':'), isEndpoint ? plain.lastIndexOf('%3a') : -1)
  if (colon === modelStart || (isEndpoint && colon < modelStart)) return null
  return colon > modelStart ? withPathModel(OTHER_MODEL_ENDPOINT, path, modelStart, colon)
    : withPathModel(OPERATION, path, modelStart, path.length)
}

/** What serves chat there has its model in the path, whatever the body names. */
function vertexEndpoint(rest: string): Endpoint {
  const usual = KNOWN_PATHS.get(trimPath(`/v1${rest}`))?.endpoint
  const speaksChat = usual?.protocol === 'chat' && usual.body === 'json' && usual.modelIn === 'body'
  return speaksChat ? { ...usual, modelIn: 'path' } : OTHER_MODEL_ENDPOINT
}
