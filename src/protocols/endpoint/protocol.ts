import type { BoundPlaces } from './bound-places.ts'
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

/** The protocol family of a request, as in the ledger: src/protocols/index.ts lists all. */
export type ProtocolName = string

/** An endpoint's name, as in the ledger and the metrics. `other` is any path that is not known by name. */
export type EndpointName = string

/** A wire protocol. Each has a folder in src/protocols, and the index lists it. */
export interface Protocol {
  readonly name: string
  /** The format of what the gateway itself sends to clients. */
  readonly format: ClientFormat
  /** The paths that are compared as a whole. */
  readonly paths: readonly KnownPath[]
  /** Paths with `{model}` for the model's name, for the documentation. `classify` recognises them. */
  readonly modelPaths?: readonly KnownPath[]
  /**
   * Recognises a path with variable parts.
   *
   * @param plain the path in lower case
   */
  readonly classify?: (path: string, plain: string) => Classified | null
  /** Writes that cost nothing: files, stored conversations, cancellations. In lower case, without a final slash. */
  readonly freeWrites?: RegExp
  /** Paths that call a model without naming it in the request: a default, or one in a file, an assistant or a session. */
  readonly modelCalls?: RegExp
  /** Paths of WebSockets whose first message names the model. */
  readonly modelInMessage?: RegExp
  /**
   * Does the caller read this format, if the path alone does not decide? @param hasGoogleKey the key came as `?key=`
   */
  readonly isCaller?: (headers: IncomingHttpHeaders, hasGoogleKey: boolean) => boolean
  /** The path of a request for text from a model. */
  readonly textPath?: (model: string) => string
  /** How requests are translated from and to other protocols; absent = they are not. */
  readonly translation?: Translation
  /** How requests for embeddings are translated; absent = the protocol has none. */
  readonly embeddings?: EmbeddingsTranslation
}

export type KnownPath = readonly [path: string, endpoint: Endpoint]

/** What the gateway itself sends to clients: errors, keep-alives, model lists and limits. */
export interface ClientFormat {
  readonly protocol: ProtocolName
  /** The body of an error response: JSON, always sent as application/json. */
  errorBody(error: GatewayError, requestId: string): string
  /** The event that reports an error in the middle of a stream, with its blank line. */
  streamError(error: GatewayError, requestId: string): string
  /** An upstream's error as an event. @param json in one line */
  errorEvent(json: string): string
  /** Keeps an event stream alive while nothing else is sent; the protocol's clients ignore it. */
  readonly keepAlive: string
  /** The whole model list as JSON text, in one page. */
  modelList(models: readonly string[]): string
  /** One entry of the model list as JSON text. */
  modelCard(model: string): string
  /**
   * Members of a response that a field mask must not remove: they hold the usage or the end of the stream; null = the
   * protocol has no field masks.
   */
  readonly unmaskedMembers: readonly string[] | null
  /** Lower-case name of the header in which the clients read the request id; null = they read none. */
  readonly requestIdHeader: string | null
  /** Every server of the protocol accepts Google's field masks. */
  readonly isGoogles: boolean
  /** The protocol is OpenAI's: clouds serve its endpoints at other paths too. */
  readonly isOpenais: boolean
  /** The rate limits of a key: a flat list of names and values. @param nowMs ms since 1970 */
  rateLimitHeaders(figures: RateLimitFigures, nowMs: number): string[]
}

/** What an endpoint expects as request body. The gateway does not read `bytes`, whatever their content type. */
export type BodyKind = 'json' | 'form' | 'json_or_form' | 'any' | 'bytes' | 'none'

/**
 * From what the gateway counts the usage of an endpoint if the upstream does not report it. `unmetered`: the request
 * uses something that the gateway cannot count.
 */
export type MeteringKind = 'text' | 'embedding' | 'transcript' | 'speech' | 'images' | 'unmetered'

/** What an endpoint's WebSockets carry: responses of a model, one after the other or in lanes. */
export interface SocketSession {
  /** The endpoint accepts only WebSockets. */
  readonly required: boolean
  /** The member of a message that names its lane. */
  readonly laneKey: Buffer
  /**
   * Creates the reader of a WebSocket that is one conversation with one model; each of its responses is a lane. null
   * = each request names its model.
   */
  readonly createConversation: (() => Conversation) | null
}

/** The estimated input of a response. */
export type InputEstimate = Pick<Usage, 'inputTokens' | 'cachedInputTokens' | 'inputAudioTokens'>

/** Reads what the upstream reports outside its responses. */
export interface Conversation {
  /** The input of the next response; null = the upstream has reported nothing. */
  readonly inputEstimate: InputEstimate | null
  /** The model that transcribes what the client says, and whose price applies; null = unknown. */
  readonly transcriptionModel: string | null
  /**
   * Reads the next message of the upstream.
   *
   * @returns the usage of a transcript, if the message reports one
   */
  onMessage(type: string, message: Buffer): ReportedUsage | null
}

/** Which members of a request's body contain the prompt. */
export interface PromptText {
  /** Members of the body. */
  readonly members: readonly string[]
  /** The estimate adds the tokens of a chat template, although the body has no list of messages. */
  readonly hasTemplate?: true
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
  /** Where the model's name is; `deployment`: in the path, whatever the body names. */
  readonly modelIn: 'body' | 'path' | 'deployment' | 'query' | 'none'
  /** The gateway refuses a request without a model, whatever the routes say. */
  readonly modelRequired: boolean
  /** Members of a body that name the model instead of `model`. */
  readonly modelAliases: readonly string[]
  /** The body, or a file that it names, holds requests that name their own models. */
  readonly isBatch: boolean
  /** The gateway itself responds; null = an upstream does. */
  readonly ownResponse: 'status' | 'model_list' | 'model_card' | null
  /** The WebSockets that the endpoint accepts and whose messages are metered; null = none. */
  readonly session: SocketSession | null

  /** null = requests use nothing. */
  readonly metering: MeteringKind | null
  /** null = the input is not text. */
  readonly prompt: PromptText | null
  /** Members of a response that hold its text; null = it has none. */
  readonly responseMembers: readonly string[] | null
  /** The model generates tokens for the response. */
  readonly generatesTokens: boolean
  /**
   * The members that bound the output of one response, and that every server of the protocol obeys. A server
   * may ignore other spellings.
   */
  readonly outputBounds: BoundPlaces
  /** The bound includes the tokens of thinking. */
  readonly boundsThinking: boolean
  /**
   * For an endpoint that counts the tokens of its prompt: writes the body of a response with that count; null = the
   * endpoint does something else.
   */
  readonly tokenCount: ((tokens: number) => string) | null
  /** Each prompt of a list gets a response of its own. */
  readonly respondsToEachPrompt: boolean
  /** A request may ask for a response in the background. */
  readonly supportsBackground: boolean
  /** How to ask streams to report their usage; null = they report it unasked, or never. */
  readonly usageOption: UsageOption | null

  /** Responses are JSON or streams of JSON; anything else is not a response of this endpoint. */
  readonly respondsWithJson: boolean
  /** The path alone asks for a stream, which may be one JSON array. */
  readonly streamsByPath: boolean
  /** Reads the usage that an upstream reports; null = it reports none. */
  readonly usage: UsageReader | null
  /** Creates the meter of the endpoint's streams; null = the gateway does not read them. */
  readonly createMeter: ((limits: MeterLimits) => StreamMeter) | null
  /** An event can hold an image. */
  readonly hasLargeEvents: boolean
  /** How broken streams are continued or completed; null = they are not. */
  readonly streams: StreamSupport | null
}

export interface UsageOption {
  /** The edits that ask for the usage; null = the request needs none. */
  edits(body: Buffer, json: ValidJson): Edit[] | null
  /** Creates a filter that removes the usage from a response, for a client that did not ask for usage. */
  createFilter(reader: EventReader): UsageFilter
}

/** Removes events from a stream and passes everything else on unchanged. A reader gives it the events. */
export interface UsageFilter {
  /** @returns whether the client gets the event */
  event(event: StreamEvent): boolean
  /** Takes the chunk that was read last. Returns the bytes that can be passed on now, possibly none. */
  take(chunk: Buffer): Buffer
  /** All bytes of the open block are held, so the bytes passed on end with a whole event. */
  readonly holding: boolean
  /** Ends the stream, and returns the held bytes. */
  rest(): Buffer
  /** Whole events without those that the client does not get. @param start their offset in the stream */
  withoutHidden(events: Buffer, start: number): Buffer
}

/** How the gateway reads and continues an endpoint's streams. */
export interface StreamSupport {
  /** Creates the reader that follows the response to one request, so that it can be continued. */
  createProtocol(request: Json): StreamProtocol
  /** The text that one event adds to the response. */
  text(event: Json): string
  /** Why a response to the request cannot be continued; null = it can. */
  obstacle(request: Json): string | null
  /** Does the request ask for more than one response? */
  asksForSeveral(request: Json): boolean
  /** With several responses in a stream, the end of one looks like the end of all. */
  readonly endsWithEach: boolean
}

/** A path with its endpoint and model. */
export interface Classified {
  readonly endpoint: Endpoint
  /** The model in the path, percent-decoded; null = the path names none. */
  readonly pathModel: string | null
  /** Bounds of the model's name in the path, for a rename. */
  readonly pathModelStart: number
  readonly pathModelEnd: number
}
