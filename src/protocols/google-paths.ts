import { GENERATE_VERBS, OPERATION, VERSION, unknownVerbEndpoint, verbPath } from './generate/paths.ts'
import { KNOWN_PATHS, isOpenai } from './known-paths.ts'
import { COUNT_TOKENS, MESSAGES } from './messages/paths.ts'
import { trimPath, withPathModel, withoutPathModel } from './endpoint/classified.ts'
import type { Classified, Endpoint } from './endpoint/protocol.ts'

/** Vertex AI polls a video by a verb. */
const PUBLISHER_VERBS = new Map([...GENERATE_VERBS, ['fetchpredictoperation', OPERATION]])

/** Claude at Vertex AI: the path contains the model, and the body is that of the messages protocol. */
const RAW_VERBS = new Map<string, Endpoint>(
  ['rawPredict', 'streamRawPredict'].map(verb => [verb.toLowerCase(), { ...MESSAGES, modelIn: 'path' }]),
)
const RAW_COUNT_TOKENS = /^count-tokens(?::|%3a)rawpredict/

/** Models at Vertex AI, with or without a project, and custom endpoints of a project. */
export const PUBLISHER_PATH =
  new RegExp(`^/${VERSION}/(?:projects(?:/[^/]+){3}/)?(?:publishers/([^/]+)/models|endpoints)/`)
/** A project and location in Vertex AI's paths. */
const PROJECT_LOCATION = 'projects/[^/]+/locations/[^/]+'
/** Gemini's interactions; at Vertex AI after a project. */
export const INTERACTIONS = new RegExp(`^/${VERSION}(?:/${PROJECT_LOCATION})?/interactions(/|$)`)
/** Vertex AI's batches: their requests are in a file. */
export const BATCH_JOBS = new RegExp(`^/${VERSION}/${PROJECT_LOCATION}/batchpredictionjobs(?:[/;]|$)`)
/** The chat API of Gemini and of Vertex AI. */
export const CHAT_AT_GOOGLE = new RegExp(`^/(?:v1beta/openai|${VERSION}/${PROJECT_LOCATION}/endpoints/openapi)/`)

/** Vertex AI's paths are Gemini's after a project and a publisher, or an endpoint; Claude has its own protocol. */
export function publisherPath(
  path: string, plain: string, [prefix, publisher]: RegExpExecArray,
): Classified | null {
  const modelStart = prefix.length
  if (publisher === 'anthropic' && RAW_COUNT_TOKENS.test(plain.slice(modelStart))) {
    return withoutPathModel(COUNT_TOKENS)
  }
  const verbs = publisher === 'anthropic' ? RAW_VERBS : PUBLISHER_VERBS
  const known = verbPath(path, plain, modelStart, verbs)
  if (known || plain.length === modelStart) return known
  const isEndpoint = publisher === undefined
  const slash = isEndpoint ? plain.indexOf('/', modelStart) : -1
  if (slash > modelStart) return withPathModel(vertexEndpoint(plain.slice(slash)), path, modelStart, slash)
  const colon = Math.max(plain.lastIndexOf(':'), isEndpoint ? plain.lastIndexOf('%3a') : -1)
  if (isEndpoint && colon < modelStart) return null
  return colon >= modelStart ? withPathModel(unknownVerbEndpoint(plain.slice(colon)), path, modelStart, colon)
    : withPathModel(OPERATION, path, modelStart, path.length)
}

/** A custom endpoint that serves chat has its model in the path, whatever the body names. */
function vertexEndpoint(rest: string): Endpoint {
  const usual = KNOWN_PATHS.get(trimPath(`/v1${rest}`))?.endpoint
  const speaksChat = usual && isOpenai(usual) && usual.body === 'json' && usual.modelIn === 'body'
  return speaksChat ? { ...usual, modelIn: 'path' } : unknownVerbEndpoint(rest)
}
