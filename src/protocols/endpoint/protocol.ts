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

/** The family of protocols that a request belongs to, as the ledger has it: the index has all of them. */
export type ProtocolName = string

/** An endpoint's name, as the ledger and the metrics have it. `other` is any path that is not known by name. */
export type EndpointName = string

/** A wire protocol: a folder beside this one, collected in the index. */
export interface Protocol {
  readonly name: string
  /** How the gateway itself speaks to its clients. */
  readonly format: ClientFormat
  /** The paths that are known whole. */
  readonly paths: readonly KnownPath[]
  /**
   * Recognises a path that is not known whole.
   *
   * @param plain the path in lower case
   */
  readonly classify?: (path: string, plain: string) => Classified | null
  /** Does a caller read this format, where the path alone does not decide? @param hasGoogleKey the key came as `?key=` */
  readonly isCaller?: (headers: IncomingHttpHeaders, hasGoogleKey: boolean) => boolean
  /** Where a model is asked for text. */
  readonly textPath?: (model: string) => string
  /** How it is translated from and to others; absent = it is not. */
  readonly translation?: Translation
  /** How its embeddings are translated; absent = it has none. */
  readonly embeddings?: EmbeddingsTranslation
}

export type KnownPath = readonly [path: string, endpoint: Endpoint]

/** What the gateway itself sends to clients: errors, signs of life, model lists and limits. */
export interface ClientFormat {
  readonly protocol: ProtocolName
  /** The body of an error response: JSON, always sent as application/json. */
  errorBody(error: GatewayError, requestId: string): string
  /** The event that reports an error in mid-stream, blank line included. */
  streamError(error: GatewayError, requestId: string): string
  /** An upstream's own error as an event. @param json in one line */
  errorEvent(json: string): string
  /** Keeps an event stream alive while nothing else is sent; the protocol's clients ignore it. */
  readonly keepAlive: string
  /** The whole model list as JSON text; it has one page. */
  modelList(models: readonly string[]): string
  /** One entry of the list as JSON text. */
  modelCard(model: string): string
  /** Members of a response without which its usage, or the end of its stream, is not known; null = it is never masked. */
  readonly unmaskedMembers: readonly string[] | null
  /** Lower-case name of the header in which the clients read the id of a request; null = they read none. */
  readonly requestIdHeader: string | null
  /** Every server of it takes Google's field masks. */
  readonly isGoogles: boolean
  /** The rate limits of a key: a flat list of names and values. @param nowMs ms since 1970 */
  rateLimitHeaders(figures: RateLimitFigures, nowMs: number): string[]
}

/** What the request body of an endpoint is due to be; bytes are not looked into, whatever they are called. */
export type BodyKind = 'json' | 'form' | 'json_or_form' | 'any' | 'bytes' | 'none'

/**
 * What the usage of an endpoint is made up of where the upstream does not report it. `unmetered`: something is
 * used, and the gateway cannot tell how much.
 */
export type MeteringKind = 'text' | 'embedding' | 'transcript' | 'speech' | 'images' | 'unmetered'

/** What an endpoint's WebSockets carry: responses of a model, one after the other or in lanes. */
export interface SocketSession {
  /** It takes nothing but WebSockets. */
  readonly required: boolean
  /** The member of a message that names its lane. */
  readonly laneKey: Buffer
  /**
   * Makes what follows the one conversation that it is, with one model, each of whose responses is a lane;
   * null = each request names its model.
   */
  readonly createConversation: (() => Conversation) | null
}

/** What a response reads, as far as that can be estimated. */
export type InputEstimate = Pick<Usage, 'inputTokens' | 'cachedInputTokens' | 'inputAudioTokens'>

/** Follows what the upstream reports beside its responses. */
export interface Conversation {
  /** What the next response is going to read; null = the upstream has reported nothing. */
  readonly inputEstimate: InputEstimate | null
  /** The model that transcribes what the client says, by whose price that is; null = it is not known. */
  readonly transcriptionModel: string | null
  /**
   * Takes the next of the upstream's messages.
   *
   * @returns what a transcript used, if the message is one
   */
  onMessage(type: string, message: Buffer): ReportedUsage | null
}

/** Where the text stands that a model reads. */
export interface PromptText {
  /** Members of the body. */
  readonly members: readonly string[]
  /** A chat template surrounds it, whatever its members are. */
  readonly hasTemplate?: true
}

export interface Endpoint {
  readonly name: EndpointName
  readonly protocol: ProtocolName
  readonly format: ClientFormat
  /** The path is one of several protocols: the caller's headers decide the format. */
  readonly formatByCaller: boolean
  /** Methods that the path takes, as in an Allow header. */
  readonly methods: readonly string[]
  readonly body: BodyKind
  /** Where the model's name stands; `deployment`: in the path, whatever the body names. */
  readonly modelIn: 'body' | 'path' | 'deployment' | 'query' | 'none'
  /** Without a model the request is refused, whatever the routes say. */
  readonly modelRequired: boolean
  /** Members of a body that name the model instead of `model`. */
  readonly modelAliases: readonly string[]
  /** It takes requests of its own models, in its body or in a file that it names. */
  readonly isBatch: boolean
  /** The gateway itself responds; null = an upstream does. */
  readonly ownResponse: 'status' | 'model_list' | 'model_card' | null
  /** WebSockets that it takes, whose messages are metered; null = none. */
  readonly session: SocketSession | null

  /** null = nothing is used. */
  readonly metering: MeteringKind | null
  /** null = its input is no text. */
  readonly prompt: PromptText | null
  /** Members of a response in which its text stands; null = it has none. */
  readonly responseMembers: readonly string[] | null
  /** The model generates tokens for the response. */
  readonly generatesTokens: boolean
  /**
   * The members by which a request bounds the output of one response, as paths: those that every server of the protocol
   * obeys. Other spellings may be obeyed or ignored.
   */
  readonly outputBounds: readonly string[]
  /** Tokens of thinking count as output that is bounded. */
  readonly boundsThinking: boolean
  /** It counts the tokens of its prompt: the body of a response with that number; null = it does something else. */
  readonly tokenCount: ((tokens: number) => string) | null
  /** Each prompt of a list has a response of its own. */
  readonly answersEachPrompt: boolean
  /** A request may ask for a response that is made in the background. */
  readonly supportsBackground: boolean
  /** How streams are asked to report usage; null = they do so unasked, or never. */
  readonly usageOption: UsageOption | null

  /** Responses are JSON, or streams of JSON; anything else is no response of its. */
  readonly respondsWithJson: boolean
  /** The path alone asks for a stream; it can be one JSON array. */
  readonly streamsByPath: boolean
  /** Reads the usage that an upstream reports; null = it reports none. */
  readonly usage: UsageReader | null
  /** Makes the meter of its streams; null = they pass unread. */
  readonly createMeter: ((limits: MeterLimits) => StreamMeter) | null
  /** An event can hold a picture. */
  readonly hasLargeEvents: boolean
  /** How its streams are continued, or given the end that they lack; null = they are not. */
  readonly streams: StreamSupport | null
}

export interface UsageOption {
  /** The edits that ask for it; null = there is nothing to do. */
  edits(body: Buffer, json: ValidJson): Edit[] | null
  /** Takes the usage out of the response of a client that did not ask for it. */
  createFilter(reader: EventReader): UsageFilter
}

/** Takes events out of a stream; everything else passes byte for byte. A reader gives it the events. */
export interface UsageFilter {
  /** @returns whether the client gets the event */
  event(event: StreamEvent): boolean
  /** Takes the chunk that was read last; returns what can be passed on now, which may be nothing. */
  take(chunk: Buffer): Buffer
  /** The open block is held back whole: what was passed on ended with a whole event. */
  readonly holding: boolean
  /** The stream has ended: returns what was held back. */
  rest(): Buffer
  /** Whole events without those that the client does not get. @param start where in the stream they begin */
  withoutHidden(events: Buffer, start: number): Buffer
}

/** What is known of an endpoint's streams. */
export interface StreamSupport {
  /** Makes what follows one response to the request. */
  createProtocol(request: Json): StreamProtocol
  /** What one event adds to the text of the response. */
  text(event: Json): string
  /** Why the request asks for something that cannot be continued; null = it does not. */
  obstacle(request: Json): string | null
  /** Does the request ask for more than one response? */
  asksForSeveral(request: Json): boolean
  /** The end of one of several responses looks like the end of all. */
  readonly endsWithEach: boolean
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
