import type { EndpointName } from './shared/names.ts'
import { readRequestOptions } from './shared/request-options.ts'
import { ResumableStream } from './shared/resumable-stream.ts'
import { SUPPORTED_STREAMS } from './stream-protocols.ts'

export { missingEndOf } from './missing-end.ts'
export type { PriorUsage, EventTranslator, Recovery } from './shared/resumable-stream.ts'
export { ResumableStream } from './shared/resumable-stream.ts'

/**
 * Prepares for the case that a stream breaks after some of it was sent, so that
 * another upstream can be asked for the rest (`resume: continue`):
 *
 *   1. `sent` is given every byte that goes to the client, in whole events;
 *   2. when the stream breaks, `standing` tells what can be done;
 *   3. `edits` are those that make the client's request one for the rest;
 *   4. `join` translates the events of the other answer, however often it takes.
 *
 * No overlap is looked for: what the second upstream says again is said twice.
 *
 * @param body the request's, decompressed JSON
 * @returns the reason where the request cannot be continued, whatever comes
 */
export function createResumableStream(endpoint: EndpointName, body: Buffer): ResumableStream | string {
  const wishes = readRequestOptions(body)
  if (typeof wishes === 'string') return wishes
  const known = SUPPORTED_STREAMS[endpoint]
  if (known === undefined) return 'answers of this endpoint cannot be continued'
  return known.obstacle(wishes) ?? new ResumableStream(known.createProtocol(wishes), known.text)
}
