import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayError } from '../../base/errors.ts'
import type { EmbeddingsTranslation } from '../neutral/embeddings.ts'
import type { Translation } from '../neutral/translation.ts'
import type { ValidJson } from '../json/json-scan.ts'
import type { RateLimitFigures } from './rate-limit-headers.ts'
import type { ReportedUsage, UsageReader } from '../usage/reported-usage.ts'
import type { CallReader } from '../events/call-reader.ts'
import type { Json, StreamProtocol } from '../events/resumable-stream.ts'
import type { Edit } from '../json/splice.ts'
import type { EventReader, StreamEvent } from '../events/stream-event.ts'
import type { MeterLimits, StreamMeter } from '../events/stream-meter.ts'
import type { Usage } from '../usage/usage.ts'

/** The protocol of a request, as the ledger records it. src/protocols/index.ts lists all protocols. */
export type ProtocolName = string

/** An endpoint's name in the ledger and the metrics. Any path without a known name has the endpoint `other`. */
export type EndpointName = string

/** A wire protocol. Each protocol has a folder in src/protocols and an entry in src/protocols/index.ts. */
export interface Protocol {
  readonly name: string
  readonly format: ClientFormat
  /** Fixed paths: a request matches if its whole path is equal. */
  readonly paths: readonly KnownPath[]
  /** Paths with `{model}` in place of the model's name, only for `knownEndpoints`. Requests are matched by `classify`. */
  readonly modelPaths?: readonly KnownPath[]
  /** Classifies a path that has variable parts. @param plain the path in lower case */
  readonly classify?: (path: string, plain: string) => Classified | null
  /** Paths of writes that cost nothing: files, stored conversations, cancellations. They are in lower case, without a final slash. */
  readonly freeWrites?: RegExp
  /**
   * Paths of requests that call a model although the request does not name one: the model is a default, or a file, an assistant or a
   * session names it.
   */
  readonly modelCalls?: RegExp
  /** Paths of WebSockets whose first message names the model. */
  readonly modelInMessage?: RegExp
  /**
   * Tells whether the caller expects this format, for paths that several protocols share.
   * @param hasGoogleKey the key was sent as `?key=`
   */
  readonly isCaller?: (headers: IncomingHttpHeaders, hasGoogleKey: boolean) => boolean
  /** The path at which clients request text from a model. */
  readonly textPath?: (model: string) => string
  /** Translates requests from and to other protocols; absent = the gateway does not translate this protocol. */
  readonly translation?: Translation
  /** How operators' rules change requests for text; absent = they cannot. */
  readonly edits?: RequestEdits
  /** Translates requests for embeddings; absent = the protocol has no embeddings. */
  readonly embeddings?: EmbeddingsTranslation
}

/** Changes of requests for text that operators can configure for all protocols together. */
export interface RequestEdits {
  /** The members that names of the configuration mean here, as paths: `top_p` means `generationConfig.topP`. */
  readonly members: Readonly<Record<string, string>>
  /** The path of another name of `max_output_tokens` that some models need instead; absent = there is one name. */
  readonly otherOutputBound?: string
  /** The member of `stop` is a list. */
  readonly stopIsList: boolean
  /** Adds text to the instructions. */
  addInstructions(body: Buffer, texts: { readonly prepend: string | null, readonly append: string | null }): Edit[]
  /** Marks prefixes for the vendor's cache; absent = the vendor needs no marks. */
  readonly markCache?: (body: Buffer) => Edit[]
}

export type KnownPath = readonly [path: string, endpoint: Endpoint]

/** What a list of models says of one model. */
export interface ModelCard {
  readonly name: string
  /** Tokens of prompt and output together; null = unknown. */
  readonly context: number | null
  /** Maximum number of output tokens; null = unknown. */
  readonly output: number | null
}

/** Everything that the gateway itself sends to clients: errors, keep-alives, model lists and limits. */
export interface ClientFormat {
  readonly protocol: ProtocolName
  /** @returns JSON text, sent as application/json */
  errorBody(error: GatewayError, requestId: string): string
  /** @returns the event that reports an error in the middle of a stream, with the blank line that ends the event */
  streamError(error: GatewayError, requestId: string): string
  /** @returns an event that contains an upstream's error. @param json the error as JSON in one line */
  errorEvent(json: string): string
  /** A line that keeps an event stream alive; clients of the protocol ignore the line. */
  readonly keepAlive: string
  /** @returns JSON text with all models in one page */
  modelList(models: readonly ModelCard[]): string
  /** @returns JSON text */
  modelCard(model: ModelCard): string
  /**
   * Members that a field mask must not remove, because they contain the usage or the stream's end; null = the protocol has no field masks.
   */
  readonly unmaskedMembers: readonly string[] | null
  /** Lower-case name of the header from which the clients read the request id; null = none. */
  readonly requestIdHeader: string | null
  /** true if every server of the protocol accepts Google's field masks. */
  readonly isGoogles: boolean
  /** true if the protocol is OpenAI's: clouds serve its endpoints at other paths too. */
  readonly isOpenais: boolean
  /** @returns a flat list: name, value, name, value. @param nowMs ms since 1970 */
  rateLimitHeaders(figures: RateLimitFigures, nowMs: number): string[]
}

/** The expected request body. `bytes`: the gateway does not read the body, whatever its content type is. */
export type BodyKind = 'json' | 'form' | 'json_or_form' | 'any' | 'bytes' | 'none'

/** How the gateway counts usage that the upstream does not report. `unmetered`: the gateway cannot count the usage. */
export type MeteringKind = 'text' | 'embedding' | 'transcript' | 'speech' | 'images' | 'unmetered'

/** Describes an endpoint's WebSockets. A WebSocket carries a model's responses one after the other, or in parallel lanes. */
export interface SocketSession {
  /** true if the endpoint accepts only WebSockets. */
  readonly required: boolean
  /** The member of a message that names the message's lane. */
  readonly laneKey: Buffer
  /**
   * Creates the reader of a conversation, if a WebSocket is one conversation with one model; each response is then a lane. null = each
   * request on the WebSocket names its own model.
   */
  readonly createConversation: (() => Conversation) | null
}

export type InputEstimate = Pick<Usage, 'inputTokens' | 'cachedInputTokens' | 'inputAudioTokens'>

/** Reads what the upstream reports outside its responses. */
export interface Conversation {
  /** The estimated input of the next response; null = the upstream reported nothing. */
  readonly inputEstimate: InputEstimate | null
  /** The model that transcribes the client's audio, and that has its own price; null = unknown. */
  readonly transcriptionModel: string | null
  /** Reads the next message of the upstream. @returns the usage of a transcript; null = the message reports none */
  onMessage(type: string, message: Buffer): ReportedUsage | null
}

/** The members of a request's body that contain the prompt. */
export interface PromptText {
  readonly members: readonly string[]
  /** Present if the estimate adds the tokens of a chat template. Only for bodies without a list of messages. */
  readonly hasTemplate?: true
}

/** The members of a request that limit the number of output tokens. */
export interface BoundPlaces {
  /** Paths of the members: `generationConfig.maxOutputTokens`. */
  readonly paths: ReadonlySet<string>
  /** The members, and the objects around them, without case and separators: `generationconfig.maxoutputtokens`, `generationconfig`. */
  readonly names: ReadonlySet<string>
}

export interface Endpoint {
  readonly name: EndpointName
  readonly protocol: ProtocolName
  readonly format: ClientFormat
  /** true if several protocols share the path, so that the caller's headers decide the format. */
  readonly formatByCaller: boolean
  /** Methods that the path accepts, in the order of an Allow header. */
  readonly methods: readonly string[]
  readonly body: BodyKind
  /** Where a request names its model. `deployment`: in the path, even if the body names another model. */
  readonly modelIn: 'body' | 'path' | 'deployment' | 'query' | 'none'
  /** true if the gateway refuses a request without a model, even if a route matches. */
  readonly modelRequired: boolean
  /** Members of a body that name the model, as alternatives to `model`. */
  readonly modelAliases: readonly string[]
  /** true if the body, or a file that the body names, contains requests that name their own models. */
  readonly isBatch: boolean
  /** What the gateway itself responds; null = an upstream responds. */
  readonly ownResponse: 'status' | 'model_list' | 'model_card' | null
  /** Describes accepted WebSockets, whose messages are metered; null = the endpoint accepts no WebSockets. */
  readonly session: SocketSession | null

  /** null = requests use nothing. */
  readonly metering: MeteringKind | null
  /** The members that contain the prompt; null = the input is not text. */
  readonly prompt: PromptText | null
  /** Members of a response that contain the response's text; null = none. */
  readonly responseMembers: readonly string[] | null
  readonly generatesTokens: boolean
  /** The members that limit the output of one response. Every server of the protocol obeys these spellings, but may ignore others. */
  readonly outputBounds: BoundPlaces
  /** true if the output limit includes the tokens of thinking. */
  readonly boundsThinking: boolean
  /** Writes the response to a request that counts the tokens of a prompt; null = the endpoint does not count tokens. */
  readonly tokenCount: ((tokens: number) => string) | null
  /** true if each prompt of a list gets its own response. */
  readonly respondsToEachPrompt: boolean
  /** true if a request may ask for a background response. */
  readonly supportsBackground: boolean
  /** How to ask for the usage of a stream; null = streams report the usage unasked, or never. */
  readonly usageOption: UsageOption | null

  /** true if every response of this endpoint is JSON or a stream of JSON. */
  readonly respondsWithJson: boolean
  /** true if the path alone asks for a stream. The stream may be one JSON array. */
  readonly streamsByPath: boolean
  /** Reads the usage of a response; null = upstreams report no usage. */
  readonly usage: UsageReader | null
  /** Creates the meter that reads a stream; null = the gateway does not read streams of the endpoint. */
  readonly createMeter: ((limits: MeterLimits) => StreamMeter) | null
  /** true if an event can contain an image. */
  readonly hasLargeEvents: boolean
  /** Continues or completes broken streams; null = not supported. */
  readonly streams: StreamSupport | null
}

export interface UsageOption {
  /** The edits to a request that ask for the usage; null = the request needs no edit. */
  edits(body: Buffer, json: ValidJson): Edit[] | null
  /** Creates a filter that removes the usage from the stream to a client that did not ask for the usage. */
  createFilter(reader: EventReader): UsageFilter
}

/** Removes events from a stream. The caller reads the stream and passes each event to `event`. */
export interface UsageFilter {
  /** @returns whether the client gets the event */
  event(event: StreamEvent): boolean
  /** Takes the chunk that the reader read last. @returns the bytes that can be sent to the client now, possibly none */
  take(chunk: Buffer): Buffer
  /** true if the filter holds the bytes of an incomplete event. The client then has only whole events. */
  readonly holding: boolean
  /** Ends the stream. @returns the held bytes */
  rest(): Buffer
  /** Removes the events that the client does not get. @param events whole events @param start their offset in the stream */
  withoutHidden(events: Buffer, start: number): Buffer
}

export interface StreamSupport {
  /** Creates the reader of the response to one request. */
  createProtocol(request: Json): StreamProtocol
  /** Creates the reader that finds the tool calls of one response; null = the protocol sends whole calls only. */
  readonly createCallReader: (() => CallReader) | null
  /** The text that an event adds to the response. */
  text(event: Json): string
  /** The reason why a response to the request cannot be continued; null = it can be continued. */
  obstacle(request: Json): string | null
  /** Tells whether the request asks for more than one response. */
  asksForSeveral(request: Json): boolean
  /** true if, in a stream of several responses, the end of one response looks like the end of all. */
  readonly endsWithEach: boolean
}

export interface Classified {
  readonly endpoint: Endpoint
  /** Percent-decoded; null = the path names no model. */
  readonly pathModel: string | null
  /** Start and end of the model's name in the path, so that the name can be replaced. */
  readonly pathModelStart: number
  readonly pathModelEnd: number
}
