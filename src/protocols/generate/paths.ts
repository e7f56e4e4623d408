import { defineEndpoint, modelCardEndpoint, modelCardPath, modelListEndpoint, otherEndpoint, trimPath, withPathModel, withoutPathModel } from '../endpoint/classified.ts'
import { GOOGLE_PREFIX, OPERATIONS, PROJECT_LOCATION, PUBLISHER_PATH, VERSION, verbPath } from '../endpoint/google-paths.ts'
import type { EndpointOptions } from '../endpoint/classified.ts'
import type { Classified, Endpoint, KnownPath, PromptText, StreamSupport } from '../endpoint/protocol.ts'
import { GenerateStreamProtocol, asksForSeveralCandidates, generateObstacle, generateText } from './continuation.ts'
import { GENERATE_FORMAT, INTERACTION_FORMAT } from './errors.ts'
import { InteractionMeter } from './interaction-meter.ts'
import { GenerateMeter } from './meter.ts'
import { GENERATE_EMBEDDING_USAGE, GENERATE_USAGE, INTERACTION_USAGE } from './usage.ts'

const format = GENERATE_FORMAT

const STREAMS: StreamSupport = {
  createProtocol: () => new GenerateStreamProtocol(), text: generateText, obstacle: generateObstacle,
  asksForSeveral: asksForSeveralCandidates, createCallReader: null, endsWithEach: true,
}

const OF_MODEL = { format, modelIn: 'path', modelRequired: true, respondsWithJson: true } as const satisfies EndpointOptions
const PROMPT: PromptText = { members: ['systemInstruction', 'system_instruction', 'contents'] }
const EMBEDDING = {
  ...OF_MODEL, metering: 'embedding', generatesTokens: false, usage: GENERATE_EMBEDDING_USAGE,
} as const satisfies EndpointOptions

/** Each member in both spellings, because Google's APIs accept both. */
const OUTPUT_BOUNDS = ['generationConfig', 'generation_config'].flatMap(name => [`${name}.maxOutputTokens`, `${name}.max_output_tokens`])
const TEXT = {
  ...OF_MODEL, metering: 'text', prompt: PROMPT, outputBounds: OUTPUT_BOUNDS, boundsThinking: true, usage: GENERATE_USAGE,
  createMeter: limits => new GenerateMeter(limits), hasLargeEvents: true,
} as const satisfies EndpointOptions

/** The verbs that follow the model's name and a colon. */
const VERBS: readonly (readonly [verb: string, endpoint: Endpoint])[] = [
  ['generateContent', defineEndpoint({ ...TEXT, name: 'generate.content', responseMembers: ['candidates'] })],
  ['streamGenerateContent', defineEndpoint({ ...TEXT, name: 'generate.stream', streamsByPath: true, streams: STREAMS })],
  ['countTokens', defineEndpoint({
    ...OF_MODEL, name: 'generate.count_tokens', generatesTokens: false,
    prompt: { members: [...PROMPT.members, 'generateContentRequest', 'generate_content_request'] },
    tokenCount: tokens => JSON.stringify({ totalTokens: tokens }),
  })],
  ['embedContent', defineEndpoint({ ...EMBEDDING, name: 'generate.embed', prompt: { members: ['content'] } })],
  ['batchEmbedContents', defineEndpoint({ ...EMBEDDING, name: 'generate.batch_embed', prompt: { members: ['requests'] } })],
]

/** Known verbs whose requests are forwarded unchanged. Requests with unknown verbs under `GOOGLE_PREFIX` are forwarded unchanged too. */
const OTHER_VERBS = ['predict', 'predictLongRunning', 'batchGenerateContent', 'asyncBatchEmbedContent']

const OTHER_MODEL_ENDPOINT = otherEndpoint(format, { modelIn: 'path' })
const BATCH_ENDPOINT: Endpoint = { ...OTHER_MODEL_ENDPOINT, isBatch: true }

/** @param verb in lower case */
function unknownVerbEndpoint(verb: string): Endpoint {
  return verb.includes('batch') ? BATCH_ENDPOINT : OTHER_MODEL_ENDPOINT
}

/** A request for the state of a video or a batch, which costs nothing. */
const OPERATION: Endpoint = { ...OTHER_MODEL_ENDPOINT, name: 'generate.operation', metering: null }

const GENERATE_VERBS: ReadonlyMap<string, Endpoint> = new Map([
  ...VERBS.map(([verb, endpoint]) => [verb.toLowerCase(), endpoint] as const),
  ...OTHER_VERBS.map(verb => verb.toLowerCase()).map(verb => [verb, unknownVerbEndpoint(verb)] as const),
])
/** Vertex AI has a verb that asks for the state of a video. */
const PUBLISHER_VERBS = new Map([...GENERATE_VERBS, ['fetchpredictoperation', OPERATION]])

const MODEL_CARD = modelCardEndpoint(format, false)

export const GENERATE_PATHS: readonly KnownPath[] = [
  ['/v1beta/models', modelListEndpoint(format, false)],
  ['/v1beta/interactions', defineEndpoint({
    name: 'interactions', format: INTERACTION_FORMAT, modelAliases: ['agent'], metering: 'text',
    prompt: { members: ['system_instruction', 'input'] }, responseMembers: ['steps', 'outputs'], supportsBackground: true,
    outputBounds: ['generation_config.max_output_tokens'], boundsThinking: true, respondsWithJson: true,
    usage: INTERACTION_USAGE, createMeter: limits => new InteractionMeter(limits), hasLargeEvents: true,
  })],
]

export const GENERATE_MODEL_PATHS: readonly KnownPath[] = [
  ...VERBS.map(([verb, endpoint]) => [`/v1beta/models/{model}:${verb}`, endpoint] as const),
  ['/v1beta/models/{model}', MODEL_CARD],
]

/** Writes that cost nothing. */
export const GENERATE_FREE_WRITES = new RegExp([
  `^/(?:upload/)?${VERSION}/files$`,
  `^/${VERSION}/(?:${PROJECT_LOCATION}/)?(?:interactions/[^/]+/cancel|(?:batches|batchpredictionjobs|tuningjobs)/[^/]+:cancel)$`,
  `^/${VERSION}/(?:[^:]+/)?operations/[^/:]+:(?:cancel|wait)$`,
  `^/${VERSION}/(?:${PROJECT_LOCATION}/)?(?:publishers/[^/]+/models|endpoints)/[^/:]+:fetchpredictoperation$`,
].join('|'))

/** The endpoints of `GENERATE_PATHS`; the keys are the paths without the version. */
const UNVERSIONED = new Map(GENERATE_PATHS.map(([path, endpoint]) => [path.slice('/v1beta/'.length), withoutPathModel(endpoint)]))

const OTHER = withoutPathModel(otherEndpoint(format))
const BATCH = withoutPathModel(otherEndpoint(format, { isBatch: true }))
/** Path of the interactions. At Vertex AI, a project precedes `interactions`. */
const INTERACTIONS_PATH = new RegExp(`^/${VERSION}(?:/${PROJECT_LOCATION})?/(?=interactions(?:[/;]|$))`)
/** Vertex AI's batches. The requests of a batch are in a file. */
const BATCH_JOBS_PATH = new RegExp(`^/${VERSION}/${PROJECT_LOCATION}/batchpredictionjobs(?:[/;]|$)`)

/** Uploads and downloads of files. The body is bytes, because Gemini's client declares pieces of any file as JSON. */
const FILES = withoutPathModel(otherEndpoint(format, { body: 'bytes', modelIn: 'none' }))
const FILES_PATH = new RegExp(`^/(?:up|down)load/${VERSION}/`)

export function classifyGenerate(path: string, plain: string): Classified | null {
  const prefix = GOOGLE_PREFIX.exec(plain)?.[0]
  const interactions = INTERACTIONS_PATH.exec(plain)?.[0]
  const own = interactions ?? prefix
  const known = own === undefined ? undefined : UNVERSIONED.get(trimPath(plain.slice(own.length)))
  if (known) return known
  if (interactions !== undefined) return OTHER
  if (BATCH_JOBS_PATH.test(plain)) return BATCH
  const published = PUBLISHER_PATH.exec(plain)
  if (published) return publisherPath(path, plain, published) ?? (prefix ? OTHER : null)
  if (prefix) return modelPath(path, plain, prefix) ?? OTHER
  if (plain.startsWith('/v1/tunedmodels/')) return modelPath(path, plain, '/v1/') ?? OTHER
  if (plain.startsWith('/v1/models/')) return modelPath(path, plain, '/v1/')
  return FILES_PATH.test(plain) ? FILES : null
}

/** Classifies Vertex AI's paths: Gemini's paths with a project and a publisher, or an endpoint, in front. */
function publisherPath(path: string, plain: string, [prefix, publisher]: RegExpExecArray): Classified | null {
  const modelStart = prefix.length
  const known = knownVerbPath(path, plain, modelStart, PUBLISHER_VERBS)
  if (known || plain.length === modelStart) return known
  const isEndpoint = publisher === undefined
  const slash = isEndpoint ? plain.indexOf('/', modelStart) : -1
  if (slash > modelStart) return withPathModel(unknownVerbEndpoint(plain.slice(slash)), path, modelStart, slash)
  const colon = Math.max(plain.lastIndexOf(':'), isEndpoint ? plain.lastIndexOf('%3a') : -1)
  if (isEndpoint && colon < modelStart) return null
  return colon >= modelStart ? withPathModel(unknownVerbEndpoint(plain.slice(colon)), path, modelStart, colon)
    : withPathModel(OPERATION, path, modelStart, path.length)
}

function modelPath(path: string, plain: string, prefix: string): Classified | null {
  const modelStart = plain.indexOf('/', prefix.length) + 1
  if (modelStart === 0) return null
  const collection = plain.slice(prefix.length, modelStart - 1)
  if (collection !== 'models' && collection !== 'tunedmodels') return null
  const known = knownVerbPath(path, plain, modelStart, GENERATE_VERBS)
  if (known) return known
  const colon = plain.lastIndexOf(':')
  if (prefix !== '/v1/' && colon >= modelStart) return withPathModel(unknownVerbEndpoint(plain.slice(colon)), path, modelStart, colon)
  if (prefix !== '/v1/' && colon === -1 && collection === 'models') return modelCardPath(path, `${prefix}models/`, MODEL_CARD)
  return null
}

/** Classifies a path by the known verb, or the operation, after the model. The model begins at `modelStart`. */
function knownVerbPath(path: string, plain: string, modelStart: number, verbs: ReadonlyMap<string, Endpoint>): Classified | null {
  const operation = plain.indexOf(OPERATIONS, modelStart)
  return operation > modelStart ? withPathModel(OPERATION, path, modelStart, operation) : verbPath(path, plain, modelStart, verbs)
}
