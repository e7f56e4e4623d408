import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayError } from '../../base/errors.ts'
import type { EmbeddingsTranslation } from '../neutral/embeddings.ts'
import type { Translation } from '../neutral/translation.ts'
import type { ValidJson } from '../json/json-scan.ts'
import type { RateLimitFigures } from './rate-limit-headers.ts'
import type { ReportedUsage, UsageReader } from '../usage/reported-usage.ts'
import type { Json, StreamProtocol } from '../events/resumable-stream.ts'
import type { Edit } from '../json/splice.ts'
import type { EventReader, StreamEvent } from '../events/stream-event.ts'
import type { MeterLimits, StreamMeter } from '../events/stream-meter.ts'
import type { Usage } from '../usage/usage.ts'

/** The protocol of a request, as in the ledger; src/protocols/index.ts lists all. */
export type ProtocolName = string

/** An endpoint's name in the ledger and the metrics; `other` is any path without a known name. */
export type EndpointName = string

/** A wire protocol. Each has a folder in src/protocols and an entry in the index. */
export interface Protocol {
  readonly name: string
  readonly format: ClientFormat
  /** Paths that are compared as a whole. */
  readonly paths: readonly KnownPath[]
  /** Paths with `{model}` in place of the model's name, for `knownEndpoints` only. `classify` recognises requests. */
  readonly modelPaths?: readonly KnownPath[]
  /** Recognises a path with variable parts. @param plain the path in lower case */
  readonly classify?: (path: string, plain: string) => Classified | null
  /** Writes that cost nothing: files, stored conversations, cancellations. In lower case, without a final slash. */
  readonly freeWrites?: RegExp
  /** Paths that call a model without naming it in the request: a default, or one in a file, an assistant or a session. */
  readonly modelCalls?: RegExp
  /** Paths of WebSockets whose first message names the model. */
  readonly modelInMessage?: RegExp
  /** Does the caller read this format, if the path alone does not decide? @param hasGoogleKey the key came as `?key=` */
  readonly isCaller?: (headers: IncomingHttpHeaders, hasGoogleKey: boolean) => boolean
  /** The path of a request for text from a model. */
  readonly textPath?: (model: string) => string
  /** Translates requests from and to other protocols; absent = not translated. */
  readonly translation?: Translation
  /** Translates requests for embeddings; absent = the protocol has none. */
  readonly embeddings?: EmbeddingsTranslation
}

export type KnownPath = readonly [path: string, endpoint: Endpoint]

/** Everything that the gateway itself sends to clients: errors, keep-alives, model lists and limits. */
export interface ClientFormat {
  readonly protocol: ProtocolName
  /** JSON, sent as application/json. */
  errorBody(error: GatewayError, requestId: string): string
  /** The event, with its blank line, that reports an error in the middle of a stream. */
  streamError(error: GatewayError, requestId: string): string
  /** An upstream's error as an event. @param json in one line */
  errorEvent(json: string): string
  /** Keeps an event stream alive; the protocol's clients ignore it. */
  readonly keepAlive: string
  /** JSON text, in one page. */
  modelList(models: readonly string[]): string
  /** JSON text. */
  modelCard(model: string): string
  /** Members that a field mask must not remove: they hold the usage or the stream's end; null = the protocol has no field masks. */
  readonly unmaskedMembers: readonly string[] | null
  /** Lower-case header in which the clients read the request id; null = none. */
  readonly requestIdHeader: string | null
  /** Every server of the protocol accepts Google's field masks. */
  readonly isGoogles: boolean
  /** The protocol is OpenAI's: clouds serve its endpoints at other paths too. */
  readonly isOpenais: boolean
  /** A flat list of names and values. @param nowMs ms since 1970 */
  rateLimitHeaders(figures: RateLimitFigures, nowMs: number): string[]
}

/** Expected request body. The gateway does not read `bytes`, whatever their content type. */
export type BodyKind = 'json' | 'form' | 'json_or_form' | 'any' | 'bytes' | 'none'

/** Basis for counting usage that the upstream does not report. `unmetered`: the gateway cannot count it. */
export type MeteringKind = 'text' | 'embedding' | 'transcript' | 'speech' | 'images' | 'unmetered'

/** The responses of a model over an endpoint's WebSockets, one after the other or in lanes. */
export interface SocketSession {
  /** The endpoint accepts only WebSockets. */
  readonly required: boolean
  /** The member that names a message's lane. */
  readonly laneKey: Buffer
  /** Reader of a WebSocket that is one conversation with one model, each response a lane; null = each request names its model. */
  readonly createConversation: (() => Conversation) | null
}

export type InputEstimate = Pick<Usage, 'inputTokens' | 'cachedInputTokens' | 'inputAudioTokens'>

/** Reads reports of the upstream outside its responses. */
export interface Conversation {
  /** The estimated input of the next response; null = nothing reported. */
  readonly inputEstimate: InputEstimate | null
  /** The model, with its own price, that transcribes the client's audio; null = unknown. */
  readonly transcriptionModel: string | null
  /** Reads the next message of the upstream. @returns the usage of a transcript; null = not reported */
  onMessage(type: string, message: Buffer): ReportedUsage | null
}

/** The members of a request's body that contain the prompt. */
export interface PromptText {
  readonly members: readonly string[]
  /** The estimate adds the tokens of a chat template, although the body has no list of messages. */
  readonly hasTemplate?: true
}

/** The members with which an endpoint's protocol bounds the output. */
export interface BoundPlaces {
  /** Paths of the members: `generationConfig.maxOutputTokens`. */
  readonly paths: ReadonlySet<string>
  /** Members and the objects around them, without case and separators: `generationconfig.maxoutputtokens`, `generationconfig`. */
  readonly names: ReadonlySet<string>
}

export interface Endpoint {
  readonly name: EndpointName
  readonly protocol: ProtocolName
  readonly format: ClientFormat
  /** Several protocols share the path: the caller's headers decide the format. */
  readonly formatByCaller: boolean
  /** Methods that the path accepts, as in an Allow header. */
  readonly methods: readonly string[]
  readonly body: BodyKind
  /** `deployment`: in the path, whatever the body names. */
  readonly modelIn: 'body' | 'path' | 'deployment' | 'query' | 'none'
  /** The gateway refuses a request without a model, whatever the routes say. */
  readonly modelRequired: boolean
  /** Members of a body that name the model instead of `model`. */
  readonly modelAliases: readonly string[]
  /** The body, or a file that it names, holds requests that name their own models. */
  readonly isBatch: boolean
  /** The gateway itself responds; null = an upstream does. */
  readonly ownResponse: 'status' | 'model_list' | 'model_card' | null
  /** Accepted WebSockets whose messages are metered; null = none. */
  readonly session: SocketSession | null

  /** null = requests use nothing. */
  readonly metering: MeteringKind | null
  /** null = the input is not text. */
  readonly prompt: PromptText | null
  /** Members of a response that hold its text; null = none. */
  readonly responseMembers: readonly string[] | null
  readonly generatesTokens: boolean
  /** The members that bound the output of one response. Every server of the protocol obeys them, but may ignore other spellings. */
  readonly outputBounds: BoundPlaces
  /** The bound includes the tokens of thinking. */
  readonly boundsThinking: boolean
  /** Writes the body of a response with the tokens of the prompt; null = the endpoint does not count them. */
  readonly tokenCount: ((tokens: number) => string) | null
  /** Each prompt of a list gets its own response. */
  readonly respondsToEachPrompt: boolean
  /** A request may ask for a background response. */
  readonly supportsBackground: boolean
  /** How to ask streams for their usage; null = they report it unasked, or never. */
  readonly usageOption: UsageOption | null

  /** Only JSON and streams of JSON are responses of this endpoint. */
  readonly respondsWithJson: boolean
  /** The path alone asks for a stream, which may be one JSON array. */
  readonly streamsByPath: boolean
  /** null = upstreams report no usage. */
  readonly usage: UsageReader | null
  /** null = the gateway does not read the streams. */
  readonly createMeter: ((limits: MeterLimits) => StreamMeter) | null
  /** An event can hold an image. */
  readonly hasLargeEvents: boolean
  /** Continues or completes broken streams; null = not supported. */
  readonly streams: StreamSupport | null
}

export interface UsageOption {
  /** Edits that ask for the usage; null = the request needs none. */
  edits(body: Buffer, json: ValidJson): Edit[] | null
  /** Creates a filter that removes the usage from a response to a client that did not ask for it. */
  createFilter(reader: EventReader): UsageFilter
}

/** Removes events from a stream. A reader gives it the events. */
export interface UsageFilter {
  /** @returns whether the client gets the event */
  event(event: StreamEvent): boolean
  /** Takes the chunk that was read last. @returns the bytes that can be passed on now, possibly none */
  take(chunk: Buffer): Buffer
  /** All bytes of the open block are held, so the bytes passed on end with a whole event. */
  readonly holding: boolean
  /** Ends the stream. @returns the held bytes */
  rest(): Buffer
  /** Whole events without those that the client does not get. @param start their offset in the stream */
  withoutHidden(events: Buffer, start: number): Buffer
}

export interface StreamSupport {
  /** Creates the reader that follows the response to one request. */
  createProtocol(request: Json): StreamProtocol
  /** The text that an event adds to the response. */
  text(event: Json): string
  /** Why a response to the request cannot be continued; null = it can. */
  obstacle(request: Json): string | null
  /** Does the request ask for more than one response? */
  asksForSeveral(request: Json): boolean
  /** With several responses in a stream, the end of one looks like the end of all. */
  readonly endsWithEach: boolean
}

export interface Classified {
  readonly endpoint: Endpoint
  /** Percent-decoded; null = the path names no model. */
  readonly pathModel: string | null
  /** Bounds of the model's name in the path, for a rename. */
  readonly pathModelStart: number
  readonly pathModelEnd: number
}
