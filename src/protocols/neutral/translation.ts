import type { ReserveMemory } from '../../base/memory-reservation.ts'
import type { CapsuleKeys } from '../../base/secrets/capsule-keys.ts'
import type { CapsuleReader } from './capsule.ts'
import type { Accepts } from './accepts.ts'
import type { JsonObject } from './json.ts'
import type { TranslationReport } from './report.ts'
import type { NeutralField, NeutralRequest } from './request.ts'
import type { NeutralError, NeutralResponse, EventOutput, ResponseEvent } from './response.ts'

/** A protocol's part in translation. */
export interface Translation {
  /** The names of the endpoints whose requests are translated. */
  readonly endpoints: readonly string[]
  /** null = its clients can reach only upstreams of the same protocol. */
  readonly client: ClientSide | null
  /** null = its upstreams can serve only clients of the same protocol. */
  readonly upstream: UpstreamSide | null
}

/** For clients of the protocol: reads their requests, and writes their responses. */
export interface ClientSide {
  /** Every field of a request that the protocol's official SDK knows. */
  readonly fields: FieldTable
  /** Converts other spellings of names to the names in `fields`; absent = the protocol has no other spellings. */
  normalize?(body: JsonObject): JsonObject
  /** Reads what has a rule in `fields`, and reports nested content without a counterpart. */
  readRequest(body: JsonObject, context: ReadContext): NeutralRequest
  /** Writes the events of one streamed response. */
  createWriter(context: ClientContext): ResponseWriter
  /** Writes the body of a whole response. */
  writeBody(response: NeutralResponse, context: ClientContext): JsonObject
  /** The header in which the protocol's SDKs read the request id, lower-case. */
  readonly requestIdHeader: string
  /** Writes the body of an error response. The status is `error.status`. */
  writeError(error: NeutralError, requestId: string): JsonObject
}

/** For upstreams of the protocol: writes requests to them, and reads their responses. */
export interface UpstreamSide {
  /** What happens to each field of a request. */
  readonly support: SupportTable
  /** Tools may take plain text; false = the writer gets such a tool as one with a single argument for the text. */
  readonly takesFreeformTools: boolean
  writeRequest(request: NeutralRequest, context: WriteContext): WrittenRequest
  /**
   * Restores the body of an untranslated request whose conversation began at another upstream: opaque values of this
   * upstream are taken out of their capsules, and others are removed.
   *
   * @param provider tag of the upstream, see `providerTag`
   * @returns null = no capsule
   */
  restore(body: JsonObject, provider: string, capsules: CapsuleReader): JsonObject | null
  /** Reads one response, streamed or whole. @param provider marks its opaque values, see `providerTag` */
  createReader(provider: string): ResponseReader
  /** @param body as parsed JSON; undefined = not JSON */
  readError(status: number, body: unknown): NeutralError
}

export interface ReadContext {
  readonly report: TranslationReport
  readonly capsules: CapsuleReader
  /** The path asks for a stream, if the protocol does not say so in the body. */
  readonly stream: boolean
}

export interface WriteContext {
  readonly report: TranslationReport
  /** The upstream's name of the model. */
  readonly model: string
  /** Whether to request usage: some servers report it in streams only if a request asks for it. */
  readonly asksForUsage: boolean
  /** What the model accepts: the request already fits it, except for rules that only the writer can apply. */
  readonly accepts: Accepts
  /** Tag of the target: opaque values of other providers are not sent, see `valueFor`. */
  readonly provider: string
}

export interface WrittenRequest {
  /** Path and query, without the upstream's prefix. */
  readonly path: string
  readonly body: JsonObject
  /** Headers that the protocol requires, lower-case. */
  readonly headers: Readonly<Record<string, string>>
}

/** What a client's writer needs to know. */
export interface ClientContext {
  /** Seconds since 1970. */
  readonly created: number
  /** The gateway's request id, for errors. */
  readonly requestId: string
  /** Names the response and its parts if the upstream sends no id; unique, with the characters `[a-z0-9]`. */
  readonly uniqueId: string
  /** The client's name of the model, if the upstream names none. */
  readonly model: string
  /** The stream consists of server-sent events; false = the protocol's other format. */
  readonly isEventStream: boolean
  /** Keys for the capsules of the response. */
  readonly capsuleKeys: CapsuleKeys
  /** The request, for fields that a response repeats. */
  readonly request: NeutralRequest
  /** Reserves memory for what a writer keeps until the end of a stream; absent = memory is unlimited. */
  readonly reserveMemory?: ReserveMemory | undefined
}

/** Reads one response. It adds the events of each call to `out`, and keeps the rules of `ResponseEvent`. */
export interface ResponseReader {
  /**
   * The next event of a stream.
   *
   * @param name of the event; '' = none
   * @param value its data as parsed JSON; undefined = not JSON, such as `[DONE]`
   */
  event(name: string, value: unknown, out: EventOutput): void
  /** The stream has ended completely; absent = the protocol has an event for that. */
  end?(out: EventOutput): void
  /** Reads a whole response. Adds no events if the object is neither a response of the protocol nor an error. */
  body(value: JsonObject, out: EventOutput): void
}

/** Writes one streamed response. */
export interface ResponseWriter {
  /** @returns whole events of the protocol for the client, or '' */
  write(event: ResponseEvent): string
}

/**
 * What happens to a field of the client's body. The keys of a table are paths such as `generationConfig.topK`; a
 * field that is not in the table is dropped and reported.
 */
export type FieldTable = Readonly<Record<string, FieldRule>>

export type FieldRule =
  /** The neutral field for it. */
  | NeutralField
  /** No other protocol has it. */
  | 'dropped'
  /** It concerns only the connection between client and gateway, or has no effect. */
  | 'ignored'
  | {
    readonly to: 'dropped' | 'refused'
    /** Values without effect, which are not reported. */
    readonly unless?: readonly unknown[]
    /** For the error message and the docs. */
    readonly why?: string
  }

/** `partly`: some values have no counterpart; the writer reports these. */
export type SupportTable = Readonly<Record<NeutralField, 'mapped' | 'partly' | 'dropped'>>
