import { GatewayError } from '../../base/errors.ts'
import { exceededBound } from '../../base/json-size.ts'
import type { MissingEnd } from '../../protocols/endpoint/missing-end.ts'
import type { UsageFilter } from '../../protocols/endpoint/protocol.ts'
import type { RefusalReason } from '../../protocols/endpoint/refusal-reason.ts'
import type { EventReader } from '../../protocols/events/stream-event.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'

/** What the beginning of a response shows: open = nothing yet, good = it may go to the client, bad = it must not. */
export type Classification = 'open' | 'good' | 'bad'

/** A stream that was split into events while it was held: all its stages have read it. */
export interface FramedStream {
  readonly meter: StreamMeter
  readonly reader: EventReader
  /** null = the client gets all events. */
  readonly filter: UsageFilter | null
}

/** Reads the beginning of a response before the client gets any of it. */
export interface ResponseClassifier {
  /** Maximum bytes that the classifier reads; a longer response is decided by its first `maxBytes`. */
  readonly maxBytes: number
  /** Milliseconds from the head to the decision; null = only the deadlines apply. */
  readonly timeoutMs: number | null
  /** true = any byte of the body ends the wait for the first byte; false = the wait lasts until the decision. */
  readonly anyByteCounts: boolean
  push(chunk: Buffer): Classification
  /**
   * Decides when no more is read.
   *
   * @param whole the response has ended; false = it exceeded `maxBytes` or `timeoutMs`
   */
  decide(body: Buffer, whole: boolean): Exclude<Classification, 'open'>
  /**
   * The response broke.
   *
   * @returns null if more than the end is missing, or if that is unknown
   */
  missingEnd?(body: Buffer): MissingEnd | null
  /** What is wrong with the response; null = nothing, or the upstream sent an error. */
  readonly fault: GatewayError | null
  /** Why the upstream refused the request; null or absent = not refused, or the route has no target for the reason. */
  readonly reason?: RefusalReason | null
  /** Present if the response is held until it is complete: its stream, or null for a whole body. */
  readonly framed?: FramedStream | null
  /** Reads the usage of a stream of which only the beginning is held; absent = none. */
  readonly meter?: StreamMeter
}

/** Maximum bytes of a response that is held until it is complete. */
export const MAX_RESPONSE_BYTES = 32 * 1024 * 1024

/** The error if a response is longer than the limit for held responses. */
export function responseTooLarge(): GatewayError {
  return new GatewayError('answer_too_large', `the response is larger than the ${MAX_RESPONSE_BYTES >> 20} MB that can be held`)
}

/** The upstream sent an event that cannot be parsed. @param text its data */
export function invalidEvent(text: string): GatewayError {
  return new GatewayError('upstream_invalid', `the upstream sent an event that ${exceededBound(text) ?? 'is not well-formed'}`)
}
