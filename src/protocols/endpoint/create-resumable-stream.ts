import type { Endpoint } from './protocol.ts'
import { readRequestOptions } from './request-options.ts'
import { ResumableStream } from '../events/resumable-stream.ts'

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
export function createResumableStream({ streams }: Endpoint, body: Buffer): ResumableStream | string {
  const wishes = readRequestOptions(body)
  if (typeof wishes === 'string') return wishes
  if (streams === null) return 'answers of this endpoint cannot be continued'
  return streams.obstacle(wishes) ?? new ResumableStream(streams.createProtocol(wishes), streams.text)
}
