import { GatewayError } from '../../base/errors.ts'
import type { MissingEnd } from '../../protocols/shared/missing-end.ts'
import type { UsageFilter } from '../../protocols/shared/protocol.ts'
import type { RefusalReason } from '../../protocols/shared/refusal-reason.ts'
import type { EventReader } from '../../protocols/shared/stream-event.ts'
import type { StreamMeter } from '../../protocols/shared/stream-meter.ts'

/** What the beginning of a response shows: nothing yet, that it is a response, or that it is none. */
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
  /** Bytes that it reads; a longer response is decided on by these. */
  readonly maxBytes: number
  /** Milliseconds from the head to the decision; null = as long as the deadlines allow. */
  readonly timeoutMs: number | null
  /** Any byte of the body ends the wait for the first byte; otherwise that goes on until the decision. */
  readonly anyByteCounts: boolean
  push(chunk: Buffer): Classification
  /**
   * No more is read.
   *
   * @param whole the response has ended; otherwise it passed `maxBytes` or `timeoutMs`
   */
  decide(body: Buffer, whole: boolean): Exclude<Classification, 'open'>
  /**
   * The response broke.
   *
   * @returns null where more is missing than its end, or where that is not certain
   */
  missingEnd?(body: Buffer): MissingEnd | null
  /** What is wrong with the response; null where it is an error of the upstream's own, or good. */
  readonly fault: GatewayError | null
  /** Why the upstream refused the request; null or absent = it did not, or no target is for that. */
  readonly reason?: RefusalReason | null
  /** The response is held until it is whole: its stream, or null for a whole body. */
  readonly framed?: FramedStream | null
  /** Reads the usage of a stream whose beginning alone is held; absent = none does. */
  readonly meter?: StreamMeter
}

/** Bytes of a response that is held until it is whole. */
export const MAX_RESPONSE_BYTES = 32 * 1024 * 1024

/** A response that is longer than what can be held. */
export function responseTooLarge(): GatewayError {
  return new GatewayError('answer_too_large', `the response is larger than the ${MAX_RESPONSE_BYTES >> 20} MB that can be held`)
}
