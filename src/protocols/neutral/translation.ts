import type { CapsuleKeys } from '../../base/secrets/capsule-keys.ts'
import type { CapsuleReader } from './capsule.ts'
import type { Accepts } from './accepts.ts'
import type { JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'
import type { NeutralField, NeutralRequest } from './request.ts'
import type { NeutralError, NeutralResponse, ResponseEvent } from './response.ts'

/** A protocol's part in translation. */
export interface Translation {
  /** The names of the endpoints whose requests are translated. */
  readonly endpoints: readonly string[]
  /** null = its clients reach upstreams of the same protocol alone. */
  readonly client: ClientSide | null
  /** null = its upstreams serve clients of the same protocol alone. */
  readonly upstream: UpstreamSide | null
}

/** For clients of the protocol: reads their requests, and writes their responses. */
export interface ClientSide {
  /** Every field of a request that the protocol's official SDK knows. */
  readonly fields: FieldTable
  /** Gives the body the names of `fields`, where the protocol has others for them; absent = it has none. */
  normalize?(body: JsonObject): JsonObject
  /** Only what has a rule in `fields`; nested content that has no counterpart anywhere is reported. */
  readRequest(body: JsonObject, context: ReadContext): NeutralRequest
  /** Writes the events of one streamed response. */
  createWriter(context: ClientContext): ResponseWriter
  /** The body of a whole response. */
  writeBody(response: NeutralResponse, context: ClientContext): JsonObject
  /** The header in which its SDKs read the request's id, lower-case. */
  readonly requestIdHeader: string
  /** The body of an error response. The status is `error.status`. */
  writeError(error: NeutralError, requestId: string): JsonObject
}

/** For upstreams of the protocol: writes requests to them, and reads what they respond. */
export interface UpstreamSide {
  /** What becomes of each field of a request. */
  readonly support: SupportTable
  /** Tools may take plain text; otherwise the writer gets them with one argument that holds it. */
  readonly takesFreeformTools: boolean
  writeRequest(request: NeutralRequest, context: WriteContext): WrittenRequest
  /**
   * The body of a request that is not translated, whose conversation began at another upstream: opaque values of this
   * one come out of their capsules, and others stay behind.
   *
   * @param provider tag of the upstream, see `providerTag`
   * @returns null = it has no capsule
   */
  restore(body: JsonObject, provider: string, capsules: CapsuleReader): JsonObject | null
  /** Reads one response, streamed or whole. @param provider marks its opaque values, see `providerTag` */
  createReader(provider: string): ResponseReader
  /** @param body as parsed JSON; undefined = it is none */
  readError(status: number, body: unknown): NeutralError
}

export interface ReadContext {
  readonly report: TranslationReport
  readonly capsules: CapsuleReader
  /** The path asks for a stream, where the protocol does not say it in the body. */
  readonly stream: boolean
}

export interface WriteContext {
  readonly report: TranslationReport
  /** The model's name at the upstream. */
  readonly model: string
  /** Streams are asked to report their usage, where they do so only when asked. */
  readonly asksForUsage: boolean
  /** What the model accepts: the request fits it already, but for what only the writer can know. */
  readonly accepts: Accepts
  /** Tag of the target: opaque values of others stay behind, see `valueFor`. */
  readonly provider: string
}

export interface WrittenRequest {
  /** Path and query, before the upstream's own prefix. */
  readonly path: string
  readonly body: JsonObject
  /** Headers that the protocol requires, lower-case. */
  readonly headers: Readonly<Record<string, string>>
}

/** What a client's writer needs to know. */
export interface ClientContext {
  /** Seconds since 1970. */
  readonly created: number
  /** The gateway's id of the request, for errors. */
  readonly requestId: string
  /** Names the response and its parts where the upstream gives no id; unique, of the characters `[a-z0-9]`. */
  readonly uniqueId: string
  /** The model as the client wrote it, where the upstream names none. */
  readonly model: string
  /** A stream is to be server-sent events; otherwise it is what else the protocol has. */
  readonly isEventStream: boolean
  /** Of the capsules that the response gets. */
  readonly capsuleKeys: CapsuleKeys
  /** The request, for what a response repeats of it. */
  readonly request: NeutralRequest
}

/** Reads one response. It adds the events of each call to `out`, and keeps the rules of `ResponseEvent`. */
export interface ResponseReader {
  /**
   * The next event of a stream.
   *
   * @param name of the event, '' where it has none
   * @param value its data as parsed JSON; undefined = it is none, as of `[DONE]`
   */
  event(name: string, value: unknown, out: ResponseEvent[]): void
  /** The stream has ended, and nothing is missing; absent = its protocol has an event for that. */
  end?(out: ResponseEvent[]): void
  /** A whole response. It adds nothing where the object is none of the protocol, nor an error. */
  body(value: JsonObject, out: ResponseEvent[]): void
}

/** Writes one streamed response. */
export interface ResponseWriter {
  /** @returns what the client gets: whole events of the protocol, or '' */
  write(event: ResponseEvent): string
}

/**
 * What becomes of a field of the client's body. The keys of a table are paths, `generationConfig.topK`; a field that
 * stands in no table is dropped and reported.
 */
export type FieldTable = Readonly<Record<string, FieldRule>>

export type FieldRule =
  /** The neutral field that it becomes. */
  | NeutralField
  /** No other protocol has it. */
  | 'dropped'
  /** It concerns the connection of client and gateway, or says what is the case anyway. */
  | 'ignored'
  | {
    readonly to: 'dropped' | 'refused'
    /** Values that change nothing: they are not reported. */
    readonly unless?: readonly unknown[]
    /** For the message and the docs. */
    readonly why?: string
  }

/** `partly`: some values have no counterpart; the writer reports those. */
export type SupportTable = Readonly<Record<NeutralField, 'mapped' | 'partly' | 'dropped'>>
