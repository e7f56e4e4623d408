import { GatewayError } from '../../base/errors.ts'
import { exceededBound } from '../../base/json-size.ts'
import type { MissingEnd } from '../../protocols/endpoint/missing-end.ts'
import type { UsageFilter } from '../../protocols/endpoint/protocol.ts'
import type { RefusalReason } from '../../protocols/endpoint/refusal-reason.ts'
import type { EventReader } from '../../protocols/events/stream-event.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'

/** open = undecided, good = the response may go to the client, bad = it must not. */
export type Classification = 'open' | 'good' | 'bad'

/** A held stream that was split into events: all its stages have read it. */
export interface FramedStream {
  readonly meter: StreamMeter
  readonly reader: EventReader
  /** null = the client gets all events. */
  readonly filter: UsageFilter | null
}

/** Reads the beginning of a response before the client gets any of it. */
export interface ResponseClassifier {
  /** A longer response is decided by its first `maxBytes`. */
  readonly maxBytes: number
  /** Milliseconds from the head to the decision; null = only the deadlines apply. */
  readonly timeoutMs: number | null
  /** true = any byte of the body ends the wait for the first byte; false = the wait lasts until the decision. */
  readonly anyByteCounts: boolean
  push(chunk: Buffer): Classification
  /** @param whole the response has ended; false = it exceeded `maxBytes` or `timeoutMs` */
  decide(body: Buffer, whole: boolean): Exclude<Classification, 'open'>
  /** The response broke. @returns null = more than the end is missing, or it is unknown what is missing */
  missingEnd?(body: Buffer): MissingEnd | null
  /** null = nothing is wrong, or the upstream sent an error. */
  readonly fault: GatewayError | null
  /** Why the upstream refused the request; null or absent = not refused, or the route has no target for the reason. */
  readonly reason?: RefusalReason | null
  /** Present if the response is held until it is complete: its stream, or null for a whole body. */
  readonly framed?: FramedStream | null
  /** Reads the usage of a stream of which only the beginning is held. */
  readonly meter?: StreamMeter
}

/** Maximum bytes of a response that is held until it is complete. */
export const MAX_RESPONSE_BYTES = 32 * 1024 * 1024

export function responseTooLarge(): GatewayError {
  return new GatewayError('answer_too_large', `the response is larger than the ${MAX_RESPONSE_BYTES >> 20} MB that can be held`)
}

/** @param text data of an event that cannot be parsed */
export function invalidEvent(text: string): GatewayError {
  return new GatewayError('upstream_invalid', `the upstream sent an event that ${exceededBound(text) ?? 'is not well-formed'}`)
}
