import type { CapsuleKeys } from '../base/secrets/capsule-keys.ts'
import { GatewayError } from '../base/errors.ts'
import type { ReserveMemory } from '../base/memory-reservation.ts'
import { exceededBound } from '../base/json-size.ts'
import { classifyPath } from './classify-path.ts'
import { PROTOCOLS } from './index.ts'
import type { Accepts } from './neutral/accepts.ts'
import type { EmbeddingsFormat, EmbeddingsTranslation } from './neutral/embeddings.ts'
import { CONTEXT_LENGTH } from './neutral/errors.ts'
import { CapsuleReader, mayHoldCapsule, type CapsuleAccess } from './neutral/capsule.ts'
import type { JsonObject } from './neutral/json.ts'
import { providerTag } from './neutral/opaque.ts'
import { TranslationReport } from './neutral/report.ts'
import { EMPTY_REQUEST, type NeutralRequest } from './neutral/request.ts'
import type { ToolNames } from './neutral/translate/tool-names.ts'
import { translateRequest, type TranslatedRequest } from './neutral/translate/translate-request.ts'
import { wellFormed } from './neutral/translate/whole-characters.ts'
import { StreamTranslator, translateBody } from './neutral/translate/translate-response.ts'
import type { ClientContext, ClientSide, UpstreamSide, WrittenRequest } from './neutral/translation.ts'
import { refusalReason } from './endpoint/refusal-reason.ts'
import { estimateTokens } from './request/request-estimate.ts'
import type { Endpoint, Protocol } from './endpoint/protocol.ts'
import { parseJsonText } from './events/stream-event.ts'

/** Translates requests of one protocol for an upstream that speaks another protocol. */
export interface Translator {
  readonly from: string
  readonly to: string
  readonly client: ClientSide
  readonly upstream: UpstreamSide
  /**
   * Translates requests for embeddings; null = the endpoint is for text. With embeddings, `client` and `upstream` translate only errors.
   */
  readonly embeddings: EmbeddingsSides | null
}

interface EmbeddingsSides {
  readonly client: EmbeddingsTranslation
  readonly upstream: EmbeddingsTranslation
}

/** A translated request, with the data that the translation of the response needs. */
export interface TranslatedAttempt {
  readonly translator: Translator
  /** The endpoint at the upstream. The meter of this endpoint reads the response. */
  readonly endpoint: Endpoint
  /** The parts of the request that the response depends on: the tools by name, and whether the response is a stream. */
  readonly request: NeutralRequest
  /** The tag of the upstream, see `providerTag`. */
  readonly provider: string
  readonly capsuleKeys: CapsuleKeys
  /** The upstream's names of the client's tools; null = the upstream gets the client's names. */
  readonly toolNames: ToolNames | null
  /** Data for a response with embeddings; null = the request is for text. */
  readonly embeddings: ExpectedEmbeddings | null
}

/** Data to translate the response of a request for embeddings. */
interface ExpectedEmbeddings {
  readonly sides: EmbeddingsSides
  readonly format: EmbeddingsFormat
  /** Input tokens to report if the upstream reports none. */
  readonly estimatedTokens: number
}

interface Named<T> {
  readonly name: string
  readonly translation: T
}

/** Translations by the names of their endpoints. */
const TRANSLATIONS = byEndpoint(({ translation }) => translation)
const EMBEDDINGS = byEndpoint(({ embeddings }) => embeddings)

function byEndpoint<T extends { readonly endpoints: readonly string[] }>(read: (protocol: Protocol) => T | undefined): ReadonlyMap<string, Named<T>> {
  return new Map(PROTOCOLS.flatMap(protocol => {
    const translation = read(protocol)
    return translation ? translation.endpoints.map(endpoint => [endpoint, { name: protocol.name, translation }] as const) : []
  }))
}

/** The name of the protocol that has an endpoint at a fixed path, by the endpoint's name. */
const OWNERS: ReadonlyMap<string, string> = new Map(PROTOCOLS.flatMap(({ name, paths }) => paths.map(([, endpoint]) => [endpoint.name, name] as const)))

/** Tells whether an upstream accepts requests to the endpoint unchanged. @param speaks protocols of the upstream; null = it accepts all */
export function isSpoken(endpoint: Endpoint, speaks: readonly string[] | null): boolean {
  if (speaks === null || endpoint.formatByCaller) return true
  const named = TRANSLATIONS.get(endpoint.name)
  if (named) return speaks.includes(named.name)
  return speaks.includes(endpoint.protocol) || speaks.includes(OWNERS.get(endpoint.name) ?? '')
}

/** Tells whether the endpoint is for text, and its requests can be translated. */
export function isTranslated({ name }: Endpoint): boolean {
  return TRANSLATIONS.has(name)
}

/**
 * Finds the translator for an upstream; null = the upstream accepts requests to the endpoint unchanged.
 * @throws GatewayError not_translatable
 * @param speaks the protocols of the upstream; null = the upstream accepts all requests unchanged
 */
export function findTranslator(endpoint: Endpoint, speaks: readonly string[] | null): Translator | null {
  if (speaks === null || isSpoken(endpoint, speaks)) return null
  const embeddings = EMBEDDINGS.get(endpoint.name)
  if (embeddings) return embeddingsTranslator(endpoint, embeddings, speaks)
  const named = TRANSLATIONS.get(endpoint.name)
  const from = named?.name ?? endpoint.protocol
  const to = speaks[0] as string
  const client = named?.translation.client
  const upstream = protocolOf(to)?.translation?.upstream
  if (!client || !upstream) throw new GatewayError('not_translatable', `requests to ${endpoint.name} cannot be translated to ${to}`)
  return { from, to, client, upstream, embeddings: null }
}

/** Creates a translator to the upstream's first protocol that has embeddings. */
function embeddingsTranslator(
  endpoint: Endpoint, { name: from, translation: own }: Named<EmbeddingsTranslation>, speaks: readonly string[],
): Translator {
  const target = speaks.map(protocolOf).find(protocol => protocol?.embeddings)
  const upstream = target?.translation?.upstream
  const client = protocolOf(from)?.translation?.client
  if (!target?.embeddings || !upstream || !client) {
    throw new GatewayError('not_translatable', `requests to ${endpoint.name} cannot be translated to ${speaks.join(', ')}: it has no embeddings`)
  }
  return { from, to: target.name, client, upstream, embeddings: { client: own, upstream: target.embeddings } }
}

function protocolOf(name: string): Protocol | undefined {
  return PROTOCOLS.find(protocol => protocol.name === name)
}

export interface TranslationTarget {
  /** The model's name at the upstream. */
  readonly model: string
  /** The upstream's host; the name of the upstream if it is a simulator. */
  readonly host: string
  /** true if the path asks for a stream. */
  readonly stream: boolean
  readonly asksForUsage: boolean
  readonly accepts: Accepts
  /** true if a request is refused when the translation would drop a field. */
  readonly isStrict: boolean
  readonly capsules: CapsuleAccess
}

interface Dropped {
  readonly dropped: readonly string[]
}

/**
 * @param body the client's body, JSON
 * @throws GatewayError not_translatable, translation_lossy, invalid_json, and the errors of opening a capsule
 */
export function translate(
  translator: Translator, body: Buffer, { host, isStrict, ...target }: TranslationTarget,
): TranslatedAttempt & Dropped & { readonly written: WrittenRequest } {
  const { client, upstream, to, embeddings: sides } = translator
  const value = parseJsonText(body.toString('utf8'))
  if (typeof value !== 'object' || value === null) throw new GatewayError('invalid_json', 'the body is not a JSON object')
  const given = value as JsonObject
  const provider = providerTag(to, host)
  const written = sides
    ? translateEmbeddings(sides, given, target.model)
    : { ...translateRequest(client, upstream, given, { ...target, provider }), embeddings: null }
  const { dropped, request, toolNames, path, embeddings } = written
  if (isStrict) refuseLoss(dropped, 'these fields have no counterpart at the target')
  const { endpoint } = classifyPath(path.split('?', 1)[0] as string)
  return { translator, endpoint, dropped, request: forResponse(request), toolNames, provider, capsuleKeys: target.capsules.keys, embeddings, written }
}

/** @throws GatewayError translation_lossy */
function refuseLoss(dropped: readonly string[], why: string): void {
  const [param] = dropped
  if (param !== undefined) throw new GatewayError('translation_lossy', `${why}: ${dropped.join(', ')}`, { param })
}

/** The parts of the request that the translation of the response needs. Other parts would use memory until the response ends. */
function forResponse({ stream, includeUsage, tools }: NeutralRequest): NeutralRequest {
  return { ...EMPTY_REQUEST, stream, includeUsage, tools: tools.map(tool => ({ ...tool, description: null, parameters: null })) }
}

function translateEmbeddings(sides: EmbeddingsSides, body: JsonObject, model: string): TranslatedRequest & { readonly embeddings: ExpectedEmbeddings } {
  const report = new TranslationReport(new Map(), new Set())
  const request = sides.client.readRequest(body, report)
  report.dropUnread()
  const { format, inputs } = request
  return {
    ...sides.upstream.writeRequest(request, model),
    headers: {},
    dropped: report.dropped,
    request: EMPTY_REQUEST,
    toolNames: null,
    embeddings: { sides, format, estimatedTokens: estimateTokens(Buffer.from(JSON.stringify(inputs))) },
  }
}

/**
 * Restores opaque values in an untranslated request whose conversation was translated before. Removes the values of other providers.
 * @returns null = the body has no such values. `dropped`: the fields with a capsule that this gateway cannot verify
 * @throws GatewayError translation_lossy, and the errors of opening a capsule
 */
export function restoreOpaqueValues(
  endpoint: Endpoint, body: Buffer, { host, isStrict, capsules }: Pick<TranslationTarget, 'host' | 'isStrict' | 'capsules'>,
): Dropped & { readonly body: Buffer } | null {
  if (!mayHoldCapsule(body)) return null
  const named = TRANSLATIONS.get(endpoint.name)
  const value = named?.translation.upstream && parseJsonText(body.toString('utf8'))
  if (!named?.translation.upstream || typeof value !== 'object' || value === null) return null
  const report = new TranslationReport(new Map(), new Set())
  const reader = new CapsuleReader(capsules, report)
  const restored = named.translation.upstream.restore(value as Record<string, unknown>, providerTag(named.name, host), reader)
  if (isStrict) refuseLoss(report.dropped, 'these fields do not come from this gateway, or are too old')
  return restored && { body: Buffer.from(JSON.stringify(restored)), dropped: report.dropped }
}

export interface ResponseTranslation {
  readonly attempt: TranslatedAttempt
  readonly context: ClientContext
}

/** @param request id of the request, the model as the client wrote it, and the time of arrival in ms since 1970 */
export function responseTranslation(attempt: TranslatedAttempt, { id, model, startedWall, isEventStream, reserveMemory }: {
  readonly id: string, readonly model: string | null, readonly startedWall: number, readonly isEventStream: boolean
  /** Reserves memory for data that is kept until the end of a stream; absent = the memory is not limited. */
  readonly reserveMemory?: ReserveMemory
}): ResponseTranslation {
  return {
    attempt,
    context: {
      created: Math.floor(startedWall / 1000), requestId: id, uniqueId: id.replace(/[^a-zA-Z0-9]/g, ''), model: model ?? '',
      request: attempt.request, capsuleKeys: attempt.capsuleKeys, isEventStream, reserveMemory,
    },
  }
}

export function createTranslator({ attempt: { translator: { client, upstream }, provider, toolNames }, context }: ResponseTranslation): StreamTranslator {
  return new StreamTranslator(client, upstream, context, provider, toolNames)
}

/**
 * Translates a whole response for the client: to a body, or to the events of a stream if the client asked for a stream.
 * @param body the upstream's body, decompressed
 * @throws GatewayError upstream_invalid
 */
export function translateWhole(translation: ResponseTranslation, body: string): Buffer {
  const { attempt: { translator: { client, upstream }, provider, toolNames, embeddings }, context } = translation
  const value = parseJsonText(body)
  if (typeof value !== 'object' || value === null) {
    throw new GatewayError('upstream_invalid', `the upstream responded with a body that ${exceededBound(body) ?? 'is not a JSON object'}`)
  }
  const given = value as JsonObject
  if (embeddings) return asJson(embeddingsBody(embeddings, given, context.model))
  if (!context.request.stream) return asJson(translateBody(client, upstream, given, context, provider, toolNames))
  const stream = createTranslator(translation)
  stream.whole(given)
  return stream.take()
}

function asJson(value: JsonObject): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function embeddingsBody({ sides: { client, upstream }, format, estimatedTokens }: ExpectedEmbeddings, body: JsonObject, model: string): JsonObject {
  const { vectors, inputTokens } = upstream.readResponse(body)
  if (vectors.length === 0) throw new GatewayError('upstream_invalid', 'the upstream responded without embeddings')
  if (!vectors.every(vector => vector.every(Number.isFinite))) throw new GatewayError('upstream_invalid', 'the upstream responded with embeddings that are not numbers')
  return client.writeResponse({ vectors, inputTokens: inputTokens ?? estimatedTokens }, format, model)
}

function errorBody(body: Buffer): unknown {
  const text = body.toString('utf8')
  return parseJsonText(text) ?? text
}

/** Translates the body of an upstream's error for the client. @param body decompressed */
export function translateError({ translator: { client, upstream } }: TranslatedAttempt, status: number, body: Buffer, requestId: string): string {
  const error = upstream.readError(status, errorBody(body))
  const isTooLong = refusalReason(body) === 'context_length'
  return JSON.stringify(client.writeError(wellFormed({ ...error, status, ...isTooLong && { code: CONTEXT_LENGTH } }), requestId))
}

/** The HTTP status of an error that the upstream sent with a success status. @param body the error, or the event that reports it */
export function errorStatus({ translator: { upstream } }: TranslatedAttempt, body: Buffer): number {
  const { status } = upstream.readError(500, errorBody(body))
  // The client gets 502 for an error of the operator's account, because the client cannot solve it.
  return status === 500 || (status >= 401 && status <= 403) ? 502 : status
}

const REQUEST_ID_HEADERS = ['x-request-id', 'request-id']

/**
 * Response headers that depend on the body, as a flat list of names and values. They include the upstream's request id, under the name that
 * the client's SDK reads.
 * @param valueOf returns the value of a header; the argument is a lower-case name; null = no such header
 */
export function translatedResponseHeaders(
  { attempt: { translator: { client } }, context }: ResponseTranslation, valueOf: (name: string) => string | null, status: number,
): string[] {
  const isStream = status < 400 && context.request.stream && context.isEventStream
  const type = ['content-type', isStream ? 'text/event-stream; charset=utf-8' : 'application/json']
  const id = REQUEST_ID_HEADERS.map(valueOf).find(value => value !== null)
  return id === undefined || id === null || valueOf(client.requestIdHeader) !== null ? type : [...type, client.requestIdHeader, id]
}
