import { defineEndpoint, modelCardEndpoint, modelCardPath, modelListEndpoint, otherEndpoint, trimPath, withPathModel, withoutPathModel } from '../endpoint/classified.ts'
import type { Classified, Endpoint, KnownPath, PromptText, StreamSupport } from '../endpoint/protocol.ts'
import { GenerateStreamProtocol, asksForSeveralCandidates, generateObstacle, generateText } from './continuation.ts'
import { GENERATE_FORMAT, INTERACTION_FORMAT } from './errors.ts'
import { InteractionMeter } from './interaction-meter.ts'
import { GenerateMeter } from './meter.ts'
import { GENERATE_EMBEDDING_USAGE, GENERATE_USAGE, INTERACTION_USAGE } from './usage.ts'

const format = GENERATE_FORMAT

const STREAMS: StreamSupport = {
  createProtocol: () => new GenerateStreamProtocol(),
  text: generateText,
  obstacle: generateObstacle,
  asksForSeveral: asksForSeveralCandidates,
  endsWithEach: true,
}

const OF_MODEL = { format, modelIn: 'path', modelRequired: true, respondsWithJson: true } as const satisfies Partial<Endpoint>
const PROMPT: PromptText = { members: ['systemInstruction', 'system_instruction', 'contents'] }
const EMBEDDING = {
  ...OF_MODEL, metering: 'embedding', generatesTokens: false, usage: GENERATE_EMBEDDING_USAGE,
} as const satisfies Partial<Endpoint>

/** Protocol buffers accept both spellings of a member. */
const OUTPUT_BOUNDS = ['generationConfig', 'generation_config']
  .flatMap(config => [`${config}.maxOutputTokens`, `${config}.max_output_tokens`])
const TEXT = {
  ...OF_MODEL, metering: 'text', prompt: PROMPT, outputBounds: OUTPUT_BOUNDS, boundsThinking: true, usage: GENERATE_USAGE,
  createMeter: limits => new GenerateMeter(limits), hasLargeEvents: true,
} as const satisfies Partial<Endpoint>

/** The verbs of a model, which follow its name and a colon. */
export const VERBS: readonly (readonly [verb: string, endpoint: Endpoint])[] = [
  ['generateContent', defineEndpoint({
    ...TEXT, name: 'generate.content', responseMembers: ['candidates'],
  })],
  ['streamGenerateContent', defineEndpoint({
    ...TEXT, name: 'generate.stream', streamsByPath: true, streams: STREAMS,
  })],
  ['countTokens', defineEndpoint({
    ...OF_MODEL, name: 'generate.count_tokens', generatesTokens: false,
    prompt: { members: [...PROMPT.members, 'generateContentRequest', 'generate_content_request'] },
    tokenCount: tokens => JSON.stringify({ totalTokens: tokens }),
  })],
  ['embedContent', defineEndpoint({ ...EMBEDDING, name: 'generate.embed', prompt: { members: ['content'] } })],
  ['batchEmbedContents', defineEndpoint({
    ...EMBEDDING, name: 'generate.batch_embed', prompt: { members: ['requests'] },
  })],
]

/** Version prefixes that only Google's APIs use; clients of Vertex AI use the last. */
const GOOGLE_VERSION = 'v1(?:alpha|beta1?)'
export const VERSION = `${GOOGLE_VERSION}?`
export const GENERATE_PREFIX = new RegExp(`^/${GOOGLE_VERSION}/`)

/** Verbs that are forwarded unchanged, as are unknown verbs under GENERATE_PREFIX; the path contains the model. */
const OTHER_VERBS = ['predict', 'predictLongRunning']
const BATCH_VERBS = ['batchGenerateContent', 'asyncBatchEmbedContent']

const OTHER_MODEL_ENDPOINT = otherEndpoint(format, { modelIn: 'path' })
const BATCH_ENDPOINT: Endpoint = { ...OTHER_MODEL_ENDPOINT, isBatch: true }

/** The endpoint of an unknown verb. @param verb lower-case */
export function unknownVerbEndpoint(verb: string): Endpoint {
  return verb.includes('batch') ? BATCH_ENDPOINT : OTHER_MODEL_ENDPOINT
}

/** Polling a video or a batch costs nothing. */
export const OPERATION: Endpoint = { ...OTHER_MODEL_ENDPOINT, name: 'generate.operation', metering: null }

export const GENERATE_VERBS: ReadonlyMap<string, Endpoint> = new Map([
  ...VERBS.map(([verb, endpoint]) => [verb.toLowerCase(), endpoint] as const),
  ...[...OTHER_VERBS, ...BATCH_VERBS].map(verb => verb.toLowerCase())
    .map(verb => [verb, unknownVerbEndpoint(verb)] as const),
])

export const GENERATE_MODEL_CARD = modelCardEndpoint(format, false)

export const GENERATE_PATHS: readonly KnownPath[] = [
  ['/v1beta/models', modelListEndpoint(format, false)],
  ['/v1beta/interactions', defineEndpoint({
    name: 'interactions',
    format: INTERACTION_FORMAT,
    modelAliases: ['agent'],
    metering: 'text',
    prompt: { members: ['system_instruction', 'input'] },
    responseMembers: ['steps', 'outputs'],
    supportsBackground: true,
    outputBounds: ['generation_config.max_output_tokens'],
    boundsThinking: true,
    respondsWithJson: true,
    usage: INTERACTION_USAGE,
    createMeter: limits => new InteractionMeter(limits),
    hasLargeEvents: true,
  })],
]

export const GENERATE_OTHER = withoutPathModel(otherEndpoint(format))
export const GENERATE_BATCH = withoutPathModel(otherEndpoint(format, { isBatch: true }))

/** Uploads and downloads of Gemini's files: its client declares the pieces of any file as JSON. */
const FILES = withoutPathModel(otherEndpoint(format, { body: 'bytes', modelIn: 'none' }))
const FILES_PATH = new RegExp(`^/(?:up|down)load/${VERSION}/`)

/** Classifies paths that are not a cloud's. */
export function classifyGenerate(path: string, plain: string): Classified | null {
  const prefix = GENERATE_PREFIX.exec(plain)?.[0]
  if (prefix) return generatePath(path, plain, prefix) ?? GENERATE_OTHER
  if (plain.startsWith('/v1/tunedmodels/')) return generatePath(path, plain, '/v1/') ?? GENERATE_OTHER
  if (plain.startsWith('/v1/models/')) return generatePath(path, plain, '/v1/')
  return FILES_PATH.test(plain) ? FILES : null
}

/** @param plain the path in lower case, with the same length */
function generatePath(path: string, plain: string, prefix: string): Classified | null {
  const modelStart = plain.indexOf('/', prefix.length) + 1
  if (modelStart === 0) return null
  const collection = plain.slice(prefix.length, modelStart - 1)
  if (collection !== 'models' && collection !== 'tunedmodels') return null
  const known = verbPath(path, plain, modelStart, GENERATE_VERBS)
  if (known) return known
  const colon = plain.lastIndexOf(':')
  if (prefix !== '/v1/' && colon >= modelStart) {
    return withPathModel(unknownVerbEndpoint(plain.slice(colon)), path, modelStart, colon)
  }
  if (prefix !== '/v1/' && colon === -1 && collection === 'models') {
    return modelCardPath(path, `${prefix}models/`, GENERATE_MODEL_CARD)
  }
  return null
}

/** A known verb or an operation, after the model that begins at `modelStart` and may be empty. */
export function verbPath(
  path: string, plain: string, modelStart: number, verbs: ReadonlyMap<string, Endpoint>,
): Classified | null {
  const operation = plain.indexOf('/operations/', modelStart)
  if (operation > modelStart) return withPathModel(OPERATION, path, modelStart, operation)
  // The vendor reads an escaped colon as a colon; one inside a model's name does not begin a verb.
  for (const [at, length] of [[plain.lastIndexOf(':'), 1], [plain.lastIndexOf('%3a'), 3]] as const) {
    if (at < modelStart) continue
    const endpoint = verbs.get(trimPath(plain.slice(at + length)))
    if (endpoint) return withPathModel(endpoint, path, modelStart, at)
  }
  return null
}
