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
  /** Names of the translated endpoints. */
  readonly endpoints: readonly string[]
  /** null = clients can reach only upstreams of the same protocol. */
  readonly client: ClientSide | null
  /** null = upstreams can serve only clients of the same protocol. */
  readonly upstream: UpstreamSide | null
}

/** Reads requests of clients, and writes their responses. */
export interface ClientSide {
  /** Contains every field that the protocol's official SDK knows. */
  readonly fields: FieldTable
  /** Converts other spellings to the names in `fields`; absent = the protocol has none. */
  normalize?(body: JsonObject): JsonObject
  /** Reads the fields that have a rule in `fields`, and reports nested content without a counterpart. */
  readRequest(body: JsonObject, context: ReadContext): NeutralRequest
  createWriter(context: ClientContext): ResponseWriter
  writeBody(response: NeutralResponse, context: ClientContext): JsonObject
  /** The header in which the protocol's SDKs read the request id, lower-case. */
  readonly requestIdHeader: string
  writeError(error: NeutralError, requestId: string): JsonObject
}

/** Writes requests to upstreams, and reads their responses. */
export interface UpstreamSide {
  readonly support: SupportTable
  /** false = the writer gets a tool that takes plain text as a JSON tool with one argument for the text. */
  readonly takesFreeformTools: boolean
  writeRequest(request: NeutralRequest, context: WriteContext): WrittenRequest
  /**
   * For untranslated requests whose conversation began at another upstream: takes opaque values of this upstream out of their
   * capsules, and removes those of other upstreams.
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
  /** Some servers report usage in streams only if a request asks for it. */
  readonly asksForUsage: boolean
  /** The request already fits, except for rules that only the writer can apply. */
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

export interface ClientContext {
  /** Seconds since 1970. */
  readonly created: number
  /** For errors. */
  readonly requestId: string
  /** The base of ids that the upstream does not send; characters `[a-z0-9]`. */
  readonly uniqueId: string
  /** The client's name of the model, used if the upstream names none. */
  readonly model: string
  /** false = the protocol's other stream format. */
  readonly isEventStream: boolean
  readonly capsuleKeys: CapsuleKeys
  /** A response may repeat fields of the request. */
  readonly request: NeutralRequest
  /** For content that a writer keeps until the end of a stream; absent = unlimited. */
  readonly reserveMemory?: ReserveMemory | undefined
}

/** Reads one response. Each call adds events to `out`, by the rules of `ResponseEvent`. */
export interface ResponseReader {
  /** @param name '' = none @param value the data as parsed JSON; undefined = not JSON, such as `[DONE]` */
  event(name: string, value: unknown, out: EventOutput): void
  /** Called when the stream has ended completely; absent = the protocol has an event for that. */
  end?(out: EventOutput): void
  /** Reads a whole response. No events = the object is neither a response of the protocol nor an error. */
  body(value: JsonObject, out: EventOutput): void
}

/** Writes one streamed response. */
export interface ResponseWriter {
  /** @returns whole events of the client's protocol, or '' */
  write(event: ResponseEvent): string
}

/** By path in the client's body, such as `generationConfig.topK`. A field without a rule is dropped and reported. */
export type FieldTable = Readonly<Record<string, FieldRule>>

export type FieldRule =
  | NeutralField
  /** No other protocol has it. */
  | 'dropped'
  /** It concerns only the connection between client and gateway, or has no effect. */
  | 'ignored'
  | {
    readonly to: 'dropped' | 'refused'
    /** Values without effect, which are not reported. */
    readonly unless?: readonly unknown[]
    /** Used in the error message and the docs. */
    readonly why?: string
  }

/** `partly`: some values have no counterpart, and the writer reports them. */
export type SupportTable = Readonly<Record<NeutralField, 'mapped' | 'partly' | 'dropped'>>
