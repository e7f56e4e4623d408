import { GatewayError } from '../../base/errors.ts'
import { exceededBound } from '../../base/json-size.ts'
import type { MissingEnd } from '../../protocols/endpoint/missing-end.ts'
import type { UsageFilter } from '../../protocols/endpoint/protocol.ts'
import type { RefusalReason } from '../../protocols/endpoint/refusal-reason.ts'
import type { EventReader } from '../../protocols/events/stream-event.ts'
import type { StreamMeter } from '../../protocols/events/stream-meter.ts'

/** open = undecided, good = the response may go to the client, bad = it must not. */
export type Classification = 'open' | 'good' | 'bad'

/** A held stream that was split into events, which all stages have read. */
export interface FramedStream {
  readonly meter: StreamMeter
  readonly reader: EventReader
  /** null = the client gets all events. */
  readonly filter: UsageFilter | null
}

/** Decides from the beginning of a response whether the response may go to the client. */
export interface ResponseClassifier {
  /** If a response is longer, `decide` must decide by its first `maxBytes`. */
  readonly maxBytes: number
  /** Milliseconds from the head to the decision; null = only the deadlines apply. */
  readonly timeoutMs: number | null
  /** true = the first byte of the body ends the first-byte deadline; false = the decision ends the first-byte deadline. */
  readonly anyByteCounts: boolean
  push(chunk: Buffer): Classification
  /** @param whole the response has ended; false = it exceeded `maxBytes` or `timeoutMs` */
  decide(body: Buffer, whole: boolean): Exclude<Classification, 'open'>
  /** Called for a response that broke. @returns the missing end; null = more than the end is missing, or the missing part is unknown */
  missingEnd?(body: Buffer): MissingEnd | null
  /** Why the response is bad; null = the response is not bad, or the upstream itself sent an error. */
  readonly fault: GatewayError | null
  /** Why the upstream refused the request's content; null or absent = not refused, or the route has no target for the reason. */
  readonly reason?: RefusalReason | null
  /** Absent = the response is not held until it is complete; null = a whole body is held; otherwise the held stream. */
  readonly framed?: FramedStream | null
  /** The meter of a stream whose beginning is held; absent = the usage is not read. */
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
