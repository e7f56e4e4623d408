import type { ReserveMemory } from '../../base/memory-reservation.ts'
import type { CapsuleKeys } from '../../base/secrets/capsule-keys.ts'
import type { CapsuleReader } from './capsule.ts'
import type { Accepts } from './accepts.ts'
import type { JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'
import type { NeutralField, NeutralRequest } from './request.ts'
import type { NeutralError, NeutralResponse, EventOutput, ResponseEvent } from './response.ts'

/** How the requests and responses of a protocol are translated. */
export interface Translation {
  /** Names of the endpoints whose requests are translated. */
  readonly endpoints: readonly string[]
  /** null = clients of the protocol can use only upstreams of the same protocol. */
  readonly client: ClientSide | null
  /** null = upstreams of the protocol can serve only clients of the same protocol. */
  readonly upstream: UpstreamSide | null
}

/** Reads the requests of clients, and writes responses to them. */
export interface ClientSide {
  /** Contains every field that the protocol's official SDK has. */
  readonly fields: FieldTable
  /** Converts other spellings of fields to the names in `fields`; absent = the protocol has no other spellings. */
  normalize?(body: JsonObject): JsonObject
  /** Reads the fields that have a rule in `fields`. Reports nested content that no other protocol has. */
  readRequest(body: JsonObject, context: ReadContext): NeutralRequest
  createWriter(context: ClientContext): ResponseWriter
  writeBody(response: NeutralResponse, context: ClientContext): JsonObject
  /** The header from which the protocol's SDKs read the request id, in lower case. */
  readonly requestIdHeader: string
  writeError(error: NeutralError, requestId: string): JsonObject
}

/** Writes requests to upstreams, and reads their responses. */
export interface UpstreamSide {
  readonly support: SupportTable
  /** false = the writer gets a tool that takes plain text as a tool with one JSON argument for the text. */
  readonly takesFreeformTools: boolean
  writeRequest(request: NeutralRequest, context: WriteContext): WrittenRequest
  /**
   * For untranslated requests whose conversation began at another upstream: replaces capsules by the opaque values of this upstream, and
   * removes the values of other upstreams.
   *
   * @param provider the upstream's tag from `providerTag`
   * @returns null = the body has no capsule
   */
  restore(body: JsonObject, provider: string, capsules: CapsuleReader): JsonObject | null
  /** Creates the reader of one response, streamed or whole. @param provider the tag for the response's opaque values, see `providerTag` */
  createReader(provider: string): ResponseReader
  /** @param body parsed JSON; undefined = the body is not JSON */
  readError(status: number, body: unknown): NeutralError
}

export interface ReadContext {
  readonly report: TranslationReport
  readonly capsules: CapsuleReader
  /** true if the path asks for a stream, for protocols whose body has no field for that. */
  readonly stream: boolean
}

export interface WriteContext {
  readonly report: TranslationReport
  /** The upstream's name of the model. */
  readonly model: string
  /** true if the request asks for usage in a stream: some servers report usage only then. */
  readonly asksForUsage: boolean
  /** What the target accepts. The request already fits, except for rules that only the writer can apply. */
  readonly accepts: Accepts
  /** Tag of the target. Opaque values of other providers are not sent, see `valueFor`. */
  readonly provider: string
}

export interface WrittenRequest {
  /** Path and query, without the upstream's prefix. */
  readonly path: string
  readonly body: JsonObject
  /** Headers that the protocol requires. The names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
}

export interface ClientContext {
  /** Time of the response, in seconds since 1970. */
  readonly created: number
  /** The id of the request, which errors contain. */
  readonly requestId: string
  /** The base of ids that the upstream does not send. Its characters are `[a-z0-9]`. */
  readonly uniqueId: string
  /** The client's name of the model, used if the upstream does not name the model. */
  readonly model: string
  /** false = the stream is in the protocol's other format, which is not server-sent events. */
  readonly isEventStream: boolean
  readonly capsuleKeys: CapsuleKeys
  /** The client's request: a response may repeat fields of it. */
  readonly request: NeutralRequest
  /** Reserves memory for content that a writer keeps until the end of a stream; absent = the memory is not limited. */
  readonly reserveMemory?: ReserveMemory | undefined
}

/** Reads one response. Each method adds events to `out`, by the rules of `ResponseEvent`. */
export interface ResponseReader {
  /** @param name the event's name; '' = none @param value the data as parsed JSON; undefined = not JSON, such as `[DONE]` */
  event(name: string, value: unknown, out: EventOutput): void
  /** Called when the stream has ended completely; absent = an event of the protocol reports the end. */
  end?(out: EventOutput): void
  /** Reads a whole response. Adds no events if the object is neither a response of the protocol nor an error. */
  body(value: JsonObject, out: EventOutput): void
}

/** Writes one streamed response. */
export interface ResponseWriter {
  /** @returns whole events of the client's protocol; '' = no events */
  write(event: ResponseEvent): string
}

/** Rules for fields, by path in the client's body, such as `generationConfig.topK`. A field without a rule is dropped and reported. */
export type FieldTable = Readonly<Record<string, FieldRule>>

export type FieldRule =
  | NeutralField
  /** No other protocol has the field. */
  | 'dropped'
  /** The field concerns only the connection between client and gateway, or has no effect. */
  | 'ignored'
  | {
    readonly to: 'dropped' | 'refused'
    /** Values that have no effect, so they are not reported. */
    readonly unless?: readonly unknown[]
    /** The reason, for the error message and the docs. */
    readonly why?: string
  }

/** What an upstream's protocol does with each field. `partly`: the protocol lacks some values, which the writer reports. */
export type SupportTable = Readonly<Record<NeutralField, 'mapped' | 'partly' | 'dropped'>>
